"""The numbers and the code of README and docs, which `docs/renew.py` writes."""

import re

import pytest

from prslib.paths import project_root


def test_all_numbers_are_up_to_date_and_between_marks(program, monkeypatch):
    monkeypatch.delenv("PRSLIB_FIGURES", raising=False)
    renew = program("renew")
    names = set()
    for page, text in renew.renew().items():
        assert page.read_text("utf-8") == text, "run `python docs/renew.py`"
        names |= {kind for _, kind, _, _ in renew.BLOCK.findall(text)}
    templates = {file.stem for file in project_root().glob("docs/_templates/*.jinja")}
    assert names == {*renew.KINDS, *templates}


def test_the_list_of_questions_has_every_notebook_and_its_title(program):
    folder = project_root() / "notebooks"
    start = (folder / "start.md").read_text("utf-8")
    titles = {name: title for title, name in program("renew").QUESTION.findall(start)}
    names = {file.stem for file in folder.glob("*.py")} - {"your_stream"}
    assert set(titles) == names
    for name, title in titles.items():
        assert f"# # {title}\n" in (folder / f"{name}.py").read_text("utf-8")


PAGES = sorted(project_root().glob("docs/**/*.md"))
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")
TOP = ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"]


@pytest.mark.parametrize(
    "page", [*map(project_root().joinpath, TOP), *PAGES], ids=lambda page: page.stem
)
def test_links_lead_to_files_of_the_repository(page):
    text = page.read_text("utf-8")
    assert "literalinclude" not in text  # Sphinx alone shows it
    links = LINK.findall(text)
    assert [link for link in links if not (page.parent / link).exists()] == []
