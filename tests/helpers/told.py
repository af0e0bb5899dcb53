"""Pages that tell numbers by hand, and the tables with these numbers."""

import pandas as pd

from prslib.paths import project_root

ROOT = project_root()
IN_WORDS = ["zero", "one", "two", "three", "four", "five"]
IN_WORDS += ["six", "seven", "eight", "nine", "ten"]


def table_of(name, folder="studies"):
    return pd.read_csv(ROOT / "figures" / folder / f"{name}.csv")


def in_words(values):
    """Return the word for the number that all values are."""
    (number,) = set(values)
    return IN_WORDS[number]


def contains(page, sentence):
    """Tell whether a page, or the text of a notebook, contains a sentence."""
    text = (ROOT / page).read_text("utf-8").replace("\n# ", " ")
    return sentence in " ".join(text.split())
