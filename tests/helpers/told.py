"""Sentences of pages with numbers that were written by hand, and tables with these numbers.

A file of sentences has a heading per page, and below it whole sentences of this page, so
that a test also finds an edited word. Values are in braces, as in `str.format`.
"""

import re
from string import Formatter

import pandas as pd

from prslib.paths import project_root

ROOT = project_root()
IN_WORDS = ["zero", "one", "two", "three", "four", "five"]
IN_WORDS += ["six", "seven", "eight", "nine", "ten"]


def table_of(name, folder="studies"):
    return pd.read_csv(ROOT / "figures" / folder / f"{name}.csv")


def the_only(values):
    """Return the number that all values are."""
    (number,) = set(values)
    return number


class NumberFormatter(Formatter):
    """`str.format` that also writes {number:words}."""

    def format_field(self, value, format_spec):
        if format_spec == "words":
            return IN_WORDS[value]
        return super().format_field(value, format_spec)


def fill(file, values):
    """Return pages and a sentence of each, from a file of sentences."""
    pairs = []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("# "):
            page = line.removeprefix("# ")
        elif line:
            pairs.append((page, NumberFormatter().vformat(line, (), values)))
    return pairs


def contains(page, sentence):
    """Tell whether a page, or the text of a notebook, contains a sentence.

    A number at an end of the sentence must be a whole number of the page.
    """
    text = (ROOT / page).read_text("utf-8").replace("\n# ", " ")
    pattern = rf"(?<![\d,.]){re.escape(sentence)}(?![,.]?\d)"
    return re.search(pattern, " ".join(text.split())) is not None
