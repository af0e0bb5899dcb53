"""Articles: an executed notebook without its code, the same bytes every time."""

import re

import nbformat
import pytest
from nbformat import v4

from prslib.report import articles, build

STYLED = """<style type="text/css">
#T_1a2b3_row0_col1, #T_1a2b3_row1_col0 {
  font-weight: bold;
}
</style>
<table id="T_1a2b3">
  <caption>best in bold</caption>
  <thead><tr><th class="blank" >&nbsp;</th><th colspan="2">mAP</th></tr></thead>
  <tbody>
    <tr><th rowspan="2">a &lt; b</th><td id="T_1a2b3_row0_col0" >1.0</td>
    <td id="T_1a2b3_row0_col1" >2.0</td></tr>
  </tbody>
</table>"""
WIDGET = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"}
ALT = {"image/png": {"alt": "mAP [%]", "file": "curve.png"}}


def shown(kind, value, metadata=None):
    return v4.new_output("display_data", {kind: value}, metadata=metadata or {})


def article(*outputs, tags=()):
    cells = [
        v4.new_markdown_cell("# Why?\n\nSee [it](ledger.ipynb)."),
        v4.new_code_cell("secret()", outputs=list(outputs), metadata={"tags": [*tags]}),
    ]
    return articles.article(v4.new_notebook(cells=cells), "smoke", "rho_sweep")


def test_text_links_to_articles_and_the_notebook_and_code_is_left_out():
    text = article()
    assert text.startswith("# Why?\n\n*Made by [the notebook](")
    assert "notebooks/rho_sweep.ipynb) with the parameters of the profile" in text
    assert text.endswith("See [it](ledger.md).\n")
    assert "secret" not in text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (shown("image/png", "", ALT), r"![mAP \[%\]](../smoke/curve.png)"),
        (shown("text/markdown", "[PRS](walkthrough.ipynb)"), "[PRS](walkthrough.md)"),
        # what differs from run to run
        (v4.new_output("stream", text="\rtraining: 3 s"), ""),
        (v4.new_output("display_data", WIDGET), ""),
        (shown("text/plain", "<object at 0x7f14fa407410>"), ""),
    ],
)
def test_an_output_is_a_picture_or_text_or_left_out(output, text):
    assert (
        article(output) == article().rstrip("\n") + (f"\n\n{text}" * bool(text)) + "\n"
    )
    assert article(output, tags=["timed"]) == article()


def test_a_table_keeps_cells_spans_caption_and_bold_and_loses_random_names():
    text = articles.plain_table(STYLED)
    assert text.startswith("best in bold\n\n<table>\n<thead>\n<tr><th></th><th colspan")
    assert (
        '<tr><th rowspan="2">a &lt; b</th><td>1.0</td><td><b>2.0</b></td></tr>' in text
    )
    assert "T_1a2b3" not in text


def test_articles_come_from_seeds_or_where_it_lacks_them_from_quick():
    assert articles.profile_of("main_results") == "seeds"
    assert articles.profile_of("datasets") == "quick"


def test_an_executed_notebook_gives_the_same_article_twice():
    texts = []
    for _ in range(2):
        assert not build.execute("smoke", ["datasets"])
        file = articles.write("smoke", "datasets")
        texts.append(file.read_text())
    text, again = texts
    assert text == again
    assert "<details><summary>Parameters</summary>\n\n| parameter | value |" in text
    executed = nbformat.read(articles.executed_file("smoke", "datasets"), as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    links = re.findall(r"!\[.*\]\((.*\.png)\)", text)
    assert len(links) == len(pictures)
    assert all((file.parent / link).is_file() for link in links)
