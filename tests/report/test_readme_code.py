"""Every python block of the README and of docs/ runs as it stands, each by itself."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(code, id=f"{file.stem}{k}")
    for file in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    for k, code in enumerate(FENCED.findall(file.read_text()))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_a_block_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        if "avalanche" in code:
            if find_spec("avalanche") is None:
                pytest.skip("Avalanche is not installed (avalanche-lib on PyPI)")
            warnings.simplefilter("ignore")  # its own and its dependencies'
        exec(compile(code, "README or docs", "exec"), {"__name__": "__main__"})
