"""Articles: an executed notebook without its code, the same bytes every time."""

import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)

from prslib.report.build import executed_file

STYLED = """<style type="text/css">
</style><table id="T_1"><caption>best in bold</caption>
<thead><tr><th class="blank" >&nbsp;</th><th colspan="2">mAP</th></tr></thead>
<tbody><tr><th rowspan="2">a &lt; b</th>
<td id="T_1_row0_col0" >1.0 ± 0.1</td>
<td id="T_1_row0_col1" ><b>2.0</b></td></tr>
</tbody></table>"""
TABLE = """best in bold

<table>
<thead><tr><th></th><th colspan="2">mAP</th></tr></thead>
<tbody><tr><th rowspan="2">a &lt; b</th><td>1.0 ± 0.1</td><td><b>2.0</b></td></tr>
</tbody></table>"""
ABOUT = {"alt": 'mAP "x"', "file": "a.png", "width": 600}
PICTURE = '<p><img alt="mAP &quot;x&quot;" src="../smoke/a.png" width="600" class="narrow"></p>'
NARROW = ABOUT | {"narrow": "a_narrow.png", "width": 900}
BOTH = """<picture>
<source media="(max-width: 600px)" srcset="../smoke/a_narrow.png">
<img alt="mAP &quot;x&quot;" src="../smoke/a.png" width="900" class="wide">
</picture>"""
WIDGET = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"}


def show(kind, value, about=None):
    metadata = {kind: about} if about else {}
    return new_output("display_data", {kind: value}, metadata=metadata)


@pytest.fixture
def article(program, tmp_path, monkeypatch):
    """Write a notebook with these outputs of its code as an article."""
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    (tmp_path / "report").mkdir()
    file = executed_file("smoke", "rho_sweep")
    file.parent.mkdir(parents=True)

    def write(*outputs, tag="functions"):
        text = new_markdown_cell("# Why?\n\nSee [it](ledger.ipynb).")
        code = new_code_cell(
            "secret()", outputs=list(outputs), metadata={"tags": [tag]}
        )
        nbformat.write(new_notebook(cells=[text, code]), file)
        program("articles").write_article("smoke", "rho_sweep", tmp_path / "report")
        return (tmp_path / "report" / "rho_sweep.md").read_text("utf-8")

    return write


def test_text_links_to_articles_and_the_notebook_and_code_is_left_out(article):
    text = article()
    assert text.startswith("# Why?\n\n*This page shows the output of [a notebook](")
    assert text.endswith("\n\nSee [it](ledger.md).\n")
    assert "secret" not in text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (show("image/png", "", ABOUT), PICTURE),
        (show("image/png", "", NARROW), BOTH),
        (show("text/markdown", "[PRS](walkthrough.ipynb)"), "[PRS](walkthrough.md)"),
        (show("text/html", STYLED), TABLE),
        (show("text/html", "<table><td>NaN</td></table>"), "<table><td></td></table>"),
        # what differs from run to run, or needs a kernel
        (new_output("stream", text="\rtraining: 3 s"), ""),
        (new_output("display_data", WIDGET), ""),
        (show("text/plain", "<object at 0x7f14fa407410>"), ""),
    ],
)
def test_an_output_is_a_picture_or_text_or_left_out(article, output, text):
    without = article()
    assert article(output) == (f"{without}\n{text}\n" if text else without)


def test_the_answer_is_below_the_title(article):
    text = article(show("text/markdown", "**Because.**"), tag="answer")
    assert text.startswith("# Why?\n\n**Because.**\n\n*This page shows")
    assert text.count("Because") == 1
