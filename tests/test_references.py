"""Full names in docstrings, comments and the README lead to what they name."""

import re
from pydoc import locate

import pytest

from prslib.paths import PACKAGE, project_root

ROOT = project_root()
FILES = [ROOT / "README.md", *PACKAGE.rglob("*.py"), *ROOT.glob("notebooks/*.py")]
TEXT = "\n".join(file.read_text() for file in FILES)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(prslib[.\w]+\w)`", TEXT))))
def test_what_is_named_is_there(name):
    owner, _, field = name.rpartition(".")
    fields = getattr(locate(owner), "__dataclass_fields__", ())
    assert locate(name) is not None or field in fields
