"""Every python block of the README runs as it stands, each by itself."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", BLOCKS, ids=[f"block{k}" for k in range(len(BLOCKS))])
def test_a_block_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        if "avalanche" in code:
            if find_spec("avalanche") is None:
                pytest.skip("Avalanche is not installed (avalanche-lib on PyPI)")
            warnings.simplefilter("ignore")  # its own and its dependencies'
        exec(compile(code, str(README), "exec"), {"__name__": "__main__"})
