"""Numba's cache of compiled code is made again where it is damaged."""

import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numba
import pytest

from prslib.samplers.compiling import first_call

CODE = """
import numpy as np
from prslib import make_sampler

sampler = make_sampler("crs", size=5, num_classes=2, seed=0)
print(sampler.place(np.tile(np.eye(2, dtype=bool), (50, 1))).tolist())
"""


def placed(folder, damage=None, **machine):
    indexes = sorted(folder.rglob("*.nbi")) if damage else []
    for number, index in enumerate(indexes):
        content = index.read_bytes()
        index.write_bytes(damage(content) if number % 2 else b"random bytes")
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)} | machine,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_damaged_index_of_compiled_code_is_made_again(tmp_path):
    first = placed(tmp_path)
    assert "Warning" not in first.stderr
    for damage in (lambda content: content[:40], lambda _: b""):
        again = placed(tmp_path, damage)
        assert again.stdout == first.stdout
        assert "numba's cache" in again.stderr and "compiling again" in again.stderr


def test_a_cache_from_another_processor_serves_both(tmp_path):
    first = placed(tmp_path)
    files = len(list(tmp_path.rglob("*.nbc")))
    old = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2"}
    assert placed(tmp_path, **old).stdout == first.stdout
    assert (
        len(list(tmp_path.rglob("*.nbc"))) > files
    )  # compiled again, beside the first
    assert placed(tmp_path).stdout == first.stdout


def test_what_cannot_be_compiled_is_no_damage(tmp_path):
    index = tmp_path / "place.nbi"
    index.touch()
    stats = SimpleNamespace(cache_path=tmp_path)
    error = numba.core.errors.TypingError("no such type")
    place = Mock(side_effect=error, overloads={}, stats=stats)
    with pytest.raises(numba.core.errors.TypingError):
        first_call("PRS", place)
    assert index.exists() and place.call_count == 1
