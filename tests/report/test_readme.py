"""The numbers of README and docs, which `docs/renew.py` writes."""

import re

import pytest

from prslib.paths import project_root


def test_all_numbers_are_up_to_date_and_stand_between_markers(program, monkeypatch):
    monkeypatch.delenv("PRSLIB_FIGURES", raising=False)
    renew = program("renew")
    texts = renew.renewed()
    for page, text in texts.items():
        assert page.read_text("utf-8") == text, "run `python docs/renew.py`"
    names = {
        name for text in texts.values() for _, name, _ in renew.BLOCK.findall(text)
    }
    assert names - {renew.ANSWER} == set(renew.WRITTEN)
    notebooks = {file.stem for file in (project_root() / "notebooks").glob("*.ipynb")}
    said = renew.answers()
    assert set(said) == notebooks
    assert {name for name, text in said.items() if len(text.split()) > 25} == set()


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        (
            (1.0, 3.0),
            "PRS gains 2.0 points of mAP over CRS (95 % interval 1.0 to 3.0).",
        ),
        ((-3.0, -1.0), "PRS loses 2.0 points of mAP against CRS (95 % interval 1.0 to"),
        ((-1.0, 5.0), "clearly in mAP: +2.0 points (95 % interval -1.0 to +5.0)."),
    ],
)
def test_a_difference_gets_the_sentence_of_its_sign(ends, text, program):
    low, high = ends
    row = {"difference": (low + high) / 2, "low": low, "high": high}
    assert text in program("answers").sentence_for(row, {"what": "mAP"})


def test_an_article_begins_with_its_answer(program):
    renew = program("renew")
    assert renew.opening("PRS gains 2 points.") == "**PRS gains 2 points.**"
    on_stand_in = renew.opening("PRS gains 2 points.†")
    assert on_stand_in.endswith(
        "points, measured on a stand-in made of handwritten digits.**"
    )


def test_a_page_quotes_a_file_or_one_function_of_it(program, tmp_path, monkeypatch):
    renew = program("renew")
    monkeypatch.setattr(renew, "project_root", lambda: tmp_path)
    code = "X = 1\n\n\nclass A:\n    def go(self):\n        return X\n"
    (tmp_path / "a.py").write_text(code)
    assert renew.quoted("a.py") == f"```py\n# a.py\n{code}```"
    of_method = "```py\n# a.py\ndef go(self):\n    return X\n```"
    assert renew.quoted("a.py", "A.go") == of_method


PAGES = sorted(project_root().glob("docs/**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_is_shown_on_the_repositorys_own_pages(page):
    assert "literalinclude" not in page.read_text("utf-8")  # Sphinx alone shows it


LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")
TOP = [project_root() / name for name in ("README.md", "CONTRIBUTING.md")]


@pytest.mark.parametrize("page", [*TOP, *PAGES], ids=lambda page: page.stem)
def test_links_lead_to_files_of_the_repository(page):
    links = LINK.findall(page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
