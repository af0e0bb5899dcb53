"""Scenes show every label once, from originals of their own part."""

import os
import subprocess
import sys

import numpy as np
import pytest

from prslib.datasets import digits, scenes
from prslib.training import CHOICES

WHITE = np.full((1, 8, 8), 16)
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
    found = scenes.read_originals(np.random.default_rng(0))
    train, test = (np.bincount(digit, minlength=10) for _, digit in found.values())
    assert (train == 2 * (train + test) // 3).all()
    used = []

    def record(labels, class_digit, class_colour, originals, rng):
        used.append({original.tobytes() for original in originals[0]})
        return np.zeros((len(labels), 32, 32, 3), dtype=np.uint8)

    monkeypatch.setattr(scenes, "render_scenes", record)
    digits._draw_scenes.__wrapped__(digits.PLANS[-1])
    train, balanced, imbalanced = used
    assert balanced == imbalanced
    assert not train & balanced
    assert len(train) + len(balanced) == 1797


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, (9, 14)), (4, (9, 14)), (5, (8, 10)), (9, (8, 10))]
)
def test_every_label_is_drawn_once_without_overlap(count, sizes):
    # Flat originals in colours that add up uniquely: the area of each colour is its
    # square.
    colours = np.array([(50 + 20 * c, 255, 0) for c in range(9)], dtype=np.uint8)
    labels = np.zeros((60, 9), dtype=bool)
    labels[:, :count] = True
    originals, rng = (WHITE, np.array([0])), np.random.default_rng(0)
    digit = np.zeros(9, dtype=int)
    drawn = scenes.render_scenes(labels, digit, colours, originals, rng)
    seen = set()
    for scene in drawn:
        for label in range(9):
            area = (scene[..., :2] == colours[label, :2]).all(axis=2).sum()
            side = round(area**0.5)
            assert side**2 == area and (side > 0) == (label < count)
            seen.add(side)
    assert seen - {0} == set(range(sizes[0], sizes[1] + 1))


def test_resize_keeps_constants_and_ramps():
    ramp = np.broadcast_to(np.arange(8)[:, None], (1, 8, 8))
    large, full = scenes.resize(ramp, 16)
    np.testing.assert_array_equal(
        64 * large[0, 1:-1, 0], full * (2 * np.arange(1, 15) - 1)
    )
    assert (large == large[:, :, :1]).all()
    same, full = scenes.resize(ramp, 8)
    np.testing.assert_array_equal(16 * same, full * ramp)
    np.testing.assert_array_equal(*scenes.resize(WHITE, 11))
