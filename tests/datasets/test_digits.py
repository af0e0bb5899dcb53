"""The digits stand-ins: what is drawn."""

import os
import subprocess
import sys

import numpy as np

from prslib.datasets import load_dataset
from prslib.rounding import CHOICES

# Other digests change the results, and so the keys, of all runs.
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
    for split in ("train", *data.tests):
        drawn, labels = ({"train": d.train, **d.tests}[split] for d in (data, alone))
        for array in (drawn.inputs, labels.labels, labels.task):
            digest.update(array.tobytes())
    print(name, digest.hexdigest()[:12])
"""


def test_what_is_drawn_is_as_committed_also_by_an_old_processor(tmp_path):
    chosen = CHOICES | {"OPENBLAS_CORETYPE": "Prescott", "PRSLIB_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", DIGEST_ALL]
    said = subprocess.check_output(command, env=os.environ | chosen, text=True)
    assert said.split() == DIGESTS.split()


def test_who_changes_a_picture_changes_it_for_nobody_else():
    images = load_dataset("digits70tiny").train.inputs
    before = images.copy()
    images[:] = 0
    assert np.array_equal(load_dataset("digits70tiny").train.inputs, before)
