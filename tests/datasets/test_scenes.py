"""Scenes show every label once, from originals of their own part."""

import os
import subprocess
import sys

import numpy as np

from prslib.datasets import load_dataset, scenes
from prslib.training import CHOICES

# Other digests change the results of all runs (`prslib.training.config.PROTOCOL`).
DIGESTS = """
digits70seq c2a9dd968722  digits49seq 8f9cf5626f97
digits70tiny b26ffd59c08b  digits49tiny fc9445aa71f4
imbal-digits 643830a0e37e  imbal-colour-digits fa4763913d0f
imbal-digits-tiny e5365d2cdbf5  imbal-colour-digits-tiny d1ab99106d6c
"""
DIGEST_ALL = """
import hashlib
from prslib.datasets import DATASETS, load_dataset
for name in [name for name in DATASETS if "digits" in name]:
    data, alone = load_dataset(name), load_dataset(name, False)
    digest = hashlib.sha256()
    for part in ("train", *data.tests):
        images, labels = ({"train": d.train, **d.tests}[part] for d in (data, alone))
        for array in (images.images, labels.labels, labels.task):
            digest.update(array.tobytes())
    print(name, digest.hexdigest()[:12])
"""


def test_what_is_drawn_is_as_committed_also_by_an_old_processor(tmp_path):
    chosen = CHOICES | {"OPENBLAS_CORETYPE": "Prescott", "PRSLIB_CACHE": str(tmp_path)}
    environment = os.environ | chosen
    command = [sys.executable, "-c", DIGEST_ALL]
    said = subprocess.check_output(command, env=environment, text=True)
    assert said.split() == DIGESTS.split()


def test_parts_are_drawn_from_their_own_originals(monkeypatch):
    originals = scenes.read_originals(scenes.generator(2))
    train, test = (np.bincount(digit, minlength=10) for _, digit in originals.values())
    assert (train == 2 * (train + test) // 3).all()
    used = []

    def record(labels, class_digit, class_colour, originals, rng):
        used.append({original.tobytes() for original in originals[0]})
        return np.zeros((len(labels), 32, 32, 3), dtype=np.uint8)

    monkeypatch.setattr(scenes, "render_scenes", record)
    load_dataset("digits49tiny")
    train, balanced, imbalanced = used
    assert balanced == imbalanced
    assert not train & balanced
    assert len(train) + len(balanced) == 1797
