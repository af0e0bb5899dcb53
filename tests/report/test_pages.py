"""The report as web pages: complete in themselves, and their links lead somewhere."""

from html.parser import HTMLParser

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from prslib.cli import main
from prslib.paths import known_notebooks
from prslib.report.build import FIRST, executed_file, report_dir, write_report

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
TEXTS = {
    "ledger": "# What came out\n\nSee [`main`](main_results.ipynb) and [streams](datasets.ipynb).",
    "main_results": "# Does it?\n\nOn [one](https://example.org/a.ipynb), [two](#rare), $\\rho$.",
}


class Page(HTMLParser):
    """What a reader meets on a page: its title, links, pictures and folded code."""

    def __init__(self, text):
        super().__init__()
        self.title, self.links, self.pictures, self.folded, self.within = "", [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "img":
            self.pictures.append(attributes["src"])
        else:
            self.within.append(tag)

    def handle_endtag(self, tag):
        while tag in self.within and self.within.pop() != tag:
            pass

    def handle_data(self, data):
        if "title" in self.within:
            self.title += data
        if "details" in self.within:
            self.folded += data


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """Two notebooks of the smoke profile, as if executed."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "cache"))
    for name, text in TEXTS.items():
        file = executed_file("smoke", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"image/png": {"alt": name}}
        shown = new_output("display_data", {"image/png": PNG}, metadata=metadata)
        code = new_code_cell("draw(everything)", outputs=[shown], execution_count=1)
        write(new_notebook(cells=[new_markdown_cell(text), code]), file)


def read(name):
    return Page((report_dir("smoke") / f"{name}.html").read_text(encoding="utf-8"))


def test_every_executed_notebook_has_a_page_and_the_readme_is_the_first(executed):
    left_out = write_report("smoke", known_notebooks("smoke"))
    assert sorted(left_out) == sorted(set(known_notebooks("smoke")) - set(TEXTS))
    assert {file.stem for file in report_dir("smoke").iterdir()} == {FIRST, *TEXTS}
    for name in (FIRST, *TEXTS):
        page = read(name)
        others = {f"{other}.html" for other in (FIRST, *TEXTS)} - {f"{name}.html"}
        assert others <= set(page.links)
        assert all(source.startswith("data:image/png;base64,") for source in page.pictures)
        if name != FIRST:
            assert len(page.pictures) == 1
            assert "draw(everything)" in page.folded
    assert [read(name).title for name in TEXTS] == ["What came out", "Does it?"]
    assert len(read(FIRST).pictures) > 3
    assert "make figures" not in read(FIRST).folded


def test_links_lead_to_pages_where_there_are_some_and_to_files_where_not(executed):
    write_report("smoke", list(TEXTS))
    folder, links = report_dir("smoke"), {name: read(name).links for name in (FIRST, *TEXTS)}
    assert links["ledger"].count("main_results.html") == 2  # above the page, and in its text
    assert [link for link in links["ledger"] if link.endswith("notebooks/datasets.ipynb")]
    assert {"https://example.org/a.ipynb", "#rare"} <= set(links["main_results"])
    for link in {link for found in links.values() for link in found}:
        if not link.startswith(("https://", "#")):
            assert (folder / link).resolve().is_file(), link


def test_the_command_says_where_the_pages_are_and_what_has_none(executed, capsys):
    assert main(["report", "--profile", "smoke"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{report_dir('smoke') / 'index.html'}\n"
    assert "not executed yet, and so without a page: architectures, " in printed.err
    assert main(["report", "--profile", "quick"]) == 1
    assert "run `make figures PROFILE=quick` first" in capsys.readouterr().err
    assert not report_dir("quick").exists()
    assert main(["report", "--profile", "quack"]) == 1
    assert "unknown profile 'quack'; known profiles: paper, quick" in capsys.readouterr().err
