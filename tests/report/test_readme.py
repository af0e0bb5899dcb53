"""The numbers of README and docs, which `docs/renew.py` writes."""

import pytest

from prslib.paths import project_root
from prslib.report.claims import CLAIMS


@pytest.fixture
def renew(program, monkeypatch):
    """The program, which reads the committed figures."""
    for name in ("PRSLIB_DATA", "PRSLIB_FIGURES"):
        monkeypatch.delenv(name, raising=False)
    return program("renew")


def test_all_numbers_are_up_to_date_and_stand_between_markers(renew):
    texts = renew.renewed()
    for page, text in texts.items():
        assert page.read_text("utf-8") == text, "run `python docs/renew.py`"
    names = {
        name for text in texts.values() for _, name, _ in renew.BLOCK.findall(text)
    }
    assert names == set(renew.WRITTEN)


def test_every_notebook_has_an_answer_of_a_few_words(renew):
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    said = renew.answers()
    assert set(said) == notebooks
    assert {name for name, text in said.items() if len(text.split()) > 25} == set()
    assert set(renew.HEADLINES) <= set(CLAIMS)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((-11.6, -15.8, -7.3), "PRS loses 11.6 points of mAP against CRS (95 % "
         "interval 7.3 to 15.8)."),
        ((2.0, 1.0, 3.0), "PRS gains 2.0 points of mAP over CRS (95 % interval 1.0 "
         "to 3.0)."),
        ((0.3, -1.2, 1.9), "PRS and CRS do not differ clearly in mAP: +0.3 points "
         "(95 % interval -1.2 to +1.9)."),
    ],
)  # fmt: skip
def test_a_difference_is_said_as_people_say_it(renew, row, said):
    row = dict(zip(("difference", "low", "high"), row, strict=True))
    assert renew.difference(row, "mAP") == said
