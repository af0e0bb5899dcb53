"""Full names in docstrings, comments and the README lead to what they name."""

import re
from pydoc import locate

import pytest

from prslib.paths import PACKAGE, project_root

ROOT = project_root()
FILES = [
    ROOT / "README.md",
    *sorted(PACKAGE.rglob("*.py")),
    *sorted(ROOT.glob("notebooks/*.py")),
]
NAMES = {
    name: file.relative_to(ROOT)
    for file in FILES
    for name in re.findall(r"`(prslib(?:\.\w+)+)`", file.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_is_named_is_there(name):
    owner, _, field = name.rpartition(".")
    fields = getattr(locate(owner), "__dataclass_fields__", ())
    there = locate(name) is not None or field in fields
    assert there, f"{NAMES[name]} names {name}; there is none"
