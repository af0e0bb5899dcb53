"""Articles: an executed notebook without its code, the same bytes every time."""

import pytest
from nbformat import v4

STYLED = """<style type="text/css">
</style><table id="T_1"><caption>best in bold</caption>
<thead><tr><th class="blank" >&nbsp;</th><th colspan="2">mAP</th></tr></thead>
<tbody><tr><th rowspan="2">a &lt; b</th><td id="T_1_row0_col0" >1.0 ±\N{NO-BREAK SPACE}0.1</td>
<td id="T_1_row0_col1" ><b>2.0</b></td></tr><tr><td>NaN</td><td>None</td></tr></tbody></table>"""
TABLE = """best in bold\n
<table>
<thead>
<tr><th></th><th colspan="2">mAP</th></tr>
</thead>
<tbody>
<tr><th rowspan="2">a &lt; b</th><td>1.0 ±\N{NO-BREAK SPACE}0.1</td><td><b>2.0</b></td></tr>
<tr><td></td><td></td></tr>
</tbody>
</table>"""
NARROW = {"alt": 'mAP "x"', "file": "a.png", "narrow": "a_narrow.png", "width": 900}
PICTURE = """<picture>
  <source media="(max-width: 600px)" srcset="../smoke/a_narrow.png">
  <img alt="mAP &#34;x&#34;" src="../smoke/a.png" width="900">
</picture>"""
WIDGET = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"}
ALT = {"image/png": {"alt": "mAP [%]", "file": "curve.png"}}


def shown(kind, value, metadata=None):
    return v4.new_output("display_data", {kind: value}, metadata=metadata or {})


@pytest.fixture
def article(program):
    """Write a notebook of some text and a cell with these outputs as an article."""
    text = v4.new_markdown_cell("# Why?\n\nSee [it](ledger.ipynb).")

    def write(*outputs, **metadata):
        code = v4.new_code_cell("secret()", outputs=list(outputs), metadata=metadata)
        notebook = v4.new_notebook(cells=[text, code])
        return program("articles").article(notebook, "smoke", "rho_sweep")

    return write


def test_text_links_to_articles_and_the_notebook_and_code_is_left_out(article):
    text = article()
    answer = "<!-- answer: begin -->\n<!-- answer: end -->"
    assert text.startswith(f"# Why?\n\n{answer}\n\n*Made by [the notebook](")
    assert text.endswith("See [it](ledger.md).\n")
    assert "secret" not in text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (shown("image/png", "", ALT), r"![mAP \[%\]](../smoke/curve.png)"),
        (shown("image/png", "", {"image/png": NARROW}), PICTURE),
        (shown("text/markdown", "[PRS](walkthrough.ipynb)"), "[PRS](walkthrough.md)"),
        (shown("text/html", STYLED), TABLE),
        # what differs from run to run
        (v4.new_output("stream", text="\rtraining: 3 s"), ""),
        (v4.new_output("display_data", WIDGET), ""),
        (shown("text/plain", "<object at 0x7f14fa407410>"), ""),
    ],
)
def test_an_output_is_a_picture_or_text_or_left_out(article, output, text):
    without = article()
    assert article(output) == (f"{without}\n{text}\n" if text else without)
    assert article(output, tags=["timed"]) == without


def test_an_article_that_is_written_again_keeps_its_answer(article, program):
    text = article()
    articles = program("articles")
    answered = text.replace("begin -->\n", "begin -->\n**Because.**\n")
    assert articles.with_answer_of(answered, text) == answered
    assert articles.with_answer_of("# Why?", text) == text
