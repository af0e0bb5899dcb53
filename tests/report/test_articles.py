"""Articles: an executed notebook without its code, the same bytes every time."""

import base64
import re

import nbformat
import pytest
from nbformat import v4

from prslib.report import articles, build

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
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


def display(**data):
    names = {name.replace("_", "/"): value for name, value in data.items()}
    return v4.new_output("display_data", names)


def notebook(*outputs, tags=()):
    cells = [
        v4.new_markdown_cell("# Why?\n\nSee [it](ledger.ipynb)."),
        v4.new_code_cell("secret()", outputs=list(outputs), metadata={"tags": [*tags]}),
    ]
    return v4.new_notebook(cells=cells)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    (tmp_path / "figures" / "smoke").mkdir(parents=True)
    return tmp_path / "figures"


def test_text_links_to_articles_and_the_notebook_and_code_is_left_out(folder):
    text = articles.article(notebook(), "smoke", "rho_sweep")
    assert text.startswith("# Why?\n\n*Made by [the notebook](")
    assert "notebooks/rho_sweep.ipynb) with the parameters of the profile" in text
    assert text.endswith("See [it](ledger.md).\n")
    assert "secret" not in text


def test_a_picture_is_a_link_to_the_file_that_its_cell_saved(folder):
    saved = folder / "smoke" / "rho_sweep_curve.png"
    saved.write_bytes(PNG)
    picture = display(image_png=base64.b64encode(PNG).decode(), text_plain="<Image>")
    picture.metadata = {"image/png": {"alt": "mAP [%] over rho"}}
    text = articles.article(notebook(picture), "smoke", "rho_sweep")
    link = r"![mAP \[%\] over rho](../smoke/rho_sweep_curve.png)"
    assert text.endswith(f"{link}\n")
    saved.write_bytes(PNG + b"drawn again")
    with pytest.raises(ValueError, match="run `prslib figures rho_sweep --profile sm"):
        articles.article(notebook(picture), "smoke", "rho_sweep")


def test_a_table_keeps_cells_spans_caption_and_bold_and_loses_random_names():
    text = articles.plain_table(STYLED)
    assert text.startswith("best in bold\n\n<table>\n<thead>\n<tr><th></th><th colspan")
    assert (
        '<tr><th rowspan="2">a &lt; b</th><td>1.0</td><td><b>2.0</b></td></tr>' in text
    )
    assert "T_1a2b3" not in text


def test_what_differs_from_run_to_run_is_left_out(folder):
    printed = v4.new_output("stream", name="stdout", text="\rtraining: 3 s")
    widget = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"}
    address = display(text_plain="<object at 0x7f14fa407410>")
    outputs = [printed, v4.new_output("display_data", widget), address]
    text = articles.article(notebook(*outputs), "smoke", "rho_sweep")
    assert text.endswith("See [it](ledger.md).\n")
    timed = notebook(display(text_markdown="25 ms a redraw"), tags=["timed"])
    assert "25 ms" not in articles.article(timed, "smoke", "rho_sweep")


def test_parameters_are_folded(folder):
    shown = display(text_markdown="| `rho` | 0 |", text_plain="Settings(rho=0)")
    text = articles.article(notebook(shown), "smoke", "rho_sweep")
    assert "<details><summary>Parameters</summary>\n\n| `rho` | 0 |\n\n</det" in text


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
    executed = nbformat.read(articles.executed_file("smoke", "datasets"), as_version=4)
    shown = [o for cell in executed.cells for o in cell.get("outputs", [])]
    pictures = [o for o in shown if "image/png" in o.get("data", {})]
    links = re.findall(r"!\[.*\]\((.*\.png)\)", text)
    assert len(links) == len(pictures)
    assert all((file.parent / link).is_file() for link in links)
