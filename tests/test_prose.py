"""Every number in the conclusions is what the committed CSVs say, and so is what is said of it."""

import importlib
import pkgutil
import re

import jupytext
import prose
import pytest

from prslib.paths import project_root

DOCUMENTS = [
    importlib.import_module(f"prose.{found.name}")
    for found in pkgutil.iter_modules(prose.__path__)
    if found.name != "evidence"
]
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)|\b[CO]-F1\b|\bF1\b|\b(Task|Table|Eq\.|Fig\.) \d|\(\d\)")
DIGITS = re.compile(r".{0,40}\d.{0,20}")


def text_of(document):
    """Return the part of a document that draws conclusions, its lines joined."""
    file = project_root() / document.DOCUMENT
    if file.suffix == ".md":
        text = file.read_text()
    else:
        cells = jupytext.read(file).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown") + "\n"
    begin, end = document.SECTION
    assert text.count(begin) == 1, f"{file.name}: expected {begin!r} once"
    return " ".join(text.partition(begin)[2].partition(end or "\0")[0].split())


SENTENCES = [(document, words) for document in DOCUMENTS for words in document.SAID]


@pytest.mark.parametrize(
    ("document", "words"), SENTENCES, ids=[f"{d.__name__}: {words[:50]}" for d, words in SENTENCES]
)
def test_what_is_said_is_what_came_out(document, words):
    found = document.SAID[words]()
    if "{" not in words:
        assert found, f"{document.DOCUMENT} says {words!r}, the figures do not"
        found = ()
    assert words.format(*found) in text_of(document)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.__name__)
def test_no_number_is_said_without_evidence(document):
    text = text_of(document)
    for words, evidence in document.SAID.items():
        text = text.replace(words.format(*evidence()) if "{" in words else words, " ~ ")
    for words in document.FREE:
        assert words in text, f"{document.DOCUMENT} no longer says {words!r}"
        text = text.replace(words, " ~ ")
    left = DIGITS.findall(NAMES.sub(" ~ ", text))
    assert not left, f"no evidence for the numbers in {left}"
