"""Write executed notebooks as articles in Markdown: ``python docs/articles.py``.

`make figures` calls it. An article has the notebook's text, tables and pictures, and
none of its code. Pictures are links to the files that the notebook saved. The same
results give the same bytes: cells with the tag `timed` are left out, and so is what a
notebook prints.
"""

import argparse
import html
import os
import re
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup, Tag
from nbconvert import MarkdownExporter
from nbformat import NotebookNode
from traitlets.config import Config

from prslib.paths import figures_dir, known_notebooks, project_root
from prslib.report.build import executed_file

REPORTED = "seeds"  # the profile with the most seeds on data that everyone has
LINK = re.compile(r"\]\((?:\.\./notebooks/)?(\w+)\.ipynb\)")
TEMPLATE = Path(__file__).with_name("_templates") / "article.md.j2"
# the first of these that an output has; the template shows no plain text
KINDS = ["image/png", "text/markdown", "text/html", "text/plain"]
NARROW = 700  # pixels; pictures up to this width are shown whole on a phone
MISSING = ("NaN", "None")  # as pandas shows a value that is not there
TIMED = "timed"  # the tag of cells that say how long something took
ANSWER = "<!-- answer: begin -->\n<!-- answer: end -->"  # `docs/renew.py` fills it
ANSWERED = re.compile(r"<!-- answer: begin -->\n.*?<!-- answer: end -->", re.DOTALL)
FOOT = (
    "*Made by [the notebook]({notebook}) with the parameters of the profile "
    "`{profile}`; its code is there. [All questions and answers](README.md).*"
)


def article_file(name: str) -> Path:
    """Return a file in ``docs/report``, or ``report`` in ``PRSLIB_FIGURES`` if that is set."""
    elsewhere = os.environ.get("PRSLIB_FIGURES")
    docs = project_root() / "docs" / "report"
    return (figures_dir("report") if elsewhere else docs) / f"{name}.md"


def write(profile: str, name: str) -> Path:
    """Write the article of an executed notebook; return its file."""
    file = article_file(name)
    notebook = nbformat.read(executed_file(profile, name), as_version=4)
    text = article(notebook, profile, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_file():
        text = with_answer_of(file.read_text(encoding="utf-8"), text)
    file.write_text(text, encoding="utf-8")
    return file


def with_answer_of(before: str, text: str) -> str:
    """Return an article with the answer that it had before."""
    answer = ANSWERED.search(before)
    return text.replace(ANSWER, answer[0]) if answer else text


def article(notebook: NotebookNode, profile: str, name: str) -> str:
    """Return the text, tables and links to pictures of an executed notebook."""
    folder = article_file(name).parent
    pictures = _from(folder, figures_dir(profile))
    code = _from(folder, project_root() / "notebooks" / f"{name}.ipynb")
    foot = FOOT.format(notebook=code, profile=profile)
    text = relinked(as_markdown(notebook, f"{pictures}/"))
    head, _, rest = text.partition("\n")
    return "\n\n".join([head, ANSWER, foot, rest.strip()]) + "\n"


def as_markdown(notebook: NotebookNode, pictures: str, site: bool = False) -> str:
    """Convert an executed notebook, whose pictures are in a folder.

    What only a running kernel shows, such as sliders, is left out. A page of the site
    has the code, too, folded, and what it prints.
    """
    config = {
        "TagRemovePreprocessor": {
            "enabled": True,
            "remove_cell_tags": set() if site else {TIMED},
        },
        "ExtractOutputPreprocessor": {"enabled": False},  # pictures are files
        "NbConvertBase": {"display_data_priority": KINDS},
    }
    exporter = MarkdownExporter(
        config=Config(config),
        template_file=str(TEMPLATE),
        exclude_input=not site,
    )
    exporter.register_filter("plain_table", plain_table)
    resources = {"pictures": pictures, "site": site, "narrow": NARROW}
    return exporter.from_notebook_node(notebook, resources)[0]


def relinked(text: str) -> str:
    """Let links to notebooks lead to their articles, and those to pages to these."""
    return LINK.sub(r"](\1.md)", text).replace("](../docs/", "](../")


def plain_table(text: str) -> str:
    """Return pandas' HTML table with its cells, spans and bold numbers alone.

    A cell without a value is empty.
    """
    soup = BeautifulSoup(text, "html.parser")

    def written(cell: Tag) -> str:
        words = _words(cell)
        if words in MISSING:
            words = ""
        if cell.b:
            words = f"<b>{words}</b>"
        spans = [
            f' {key}="{value}"' for key, value in cell.attrs.items() if "span" in key
        ]
        return f"<{cell.name}{''.join(spans)}>{words}</{cell.name}>"

    lines = [f"{_words(caption)}\n" for caption in soup("caption")]
    lines.append("<table>")
    for body in soup(["thead", "tbody"]):
        rows = ["".join(map(written, row(["th", "td"]))) for row in body("tr")]
        lines += [f"<{body.name}>", *(f"<tr>{row}</tr>" for row in rows)]
        lines.append(f"</{body.name}>")
    return "\n".join([*lines, "</table>"])


def _words(tag: Tag) -> str:
    text = re.sub(r"[ \n]+", " ", tag.get_text())  # a deviation stays with its sign
    return html.escape(text.strip(), quote=False)


def _from(folder: Path, file: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    for name in known_notebooks(REPORTED):
        if executed_file(REPORTED, name).is_file():
            write(REPORTED, name)
