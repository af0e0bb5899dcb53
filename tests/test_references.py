"""Full names in docstrings, comments and the README lead to what they name."""

import dataclasses
import re
from importlib import import_module

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
    found, path = import_module("prslib"), "prslib"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if dataclasses.is_dataclass(found) and part in [
            f.name for f in dataclasses.fields(found)
        ]:
            return
        if not hasattr(found, part):
            try:
                import_module(path)
            except ModuleNotFoundError:
                pytest.fail(f"{NAMES[name]} names {name}; there is no {path}")
        found = getattr(found, part)
