"""Every python block of the README and of docs/ runs as it stands, each by itself."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# a block, and what it prints where that stands below it
FENCED = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
BLOCKS = [
    pytest.param(*block, id=f"{file.stem}{k}")
    for file in PAGES
    for k, block in enumerate(FENCED.findall(file.read_text()))
]


@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_a_block_runs(code, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    alone = [sys.executable, "-W", "ignore", "-c", code]  # its registers stay there
    if "avalanche" in code:
        if find_spec("avalanche") is None:
            pytest.skip("Avalanche is not installed (avalanche-lib on PyPI)")
        subprocess.run(alone, check=True)
    elif "register(" in code:
        said = subprocess.run(alone, check=True, capture_output=True, text=True).stdout
        assert said == printed
    else:
        exec(compile(code, "README or docs", "exec"), {"__name__": "__main__"})
        assert not printed or capsys.readouterr().out == printed
