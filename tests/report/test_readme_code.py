"""Every python block of the README and of docs/ runs as it stands, each by itself."""

import re
import warnings
from importlib.util import find_spec

import pytest

from prslib.paths import project_root

# a block, and what it prints where that stands below it
FENCED = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
PAGES = [project_root() / "README.md", *sorted(project_root().glob("docs/**/*.md"))]
BLOCKS = [
    pytest.param(*block, id=f"{file.stem}{k}")
    for file in PAGES
    for k, block in enumerate(FENCED.findall(file.read_text()))
]


@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_a_block_runs(code, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for package, project in (
        ("avalanche", "avalanche-lib"),
        ("imblearn", "imbalanced-learn"),
    ):
        if package in code and find_spec(package) is None:
            pytest.skip(f"{project} is not installed")
    if "avalanche" in code:
        warnings.simplefilter("ignore")  # its own
        monkeypatch.syspath_prepend(project_root() / "examples")
    exec(compile(code, "README or docs", "exec"), {"__name__": "__main__"})
    assert not printed or capsys.readouterr().out == printed
