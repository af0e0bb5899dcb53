"""Write executed notebooks as articles in Markdown: ``python docs/articles.py``.

`make figures PROFILE=seeds` calls it. An article contains the notebook's answer, text,
tables and pictures, but no code. Pictures are links to the files that the notebook wrote.
"""

import html
import re
from os.path import relpath
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter
from nbformat import NotebookNode

from prslib.paths import (
    figures_dir,
    known_notebooks,
    notebook_file,
    project_root,
    replacing,
)
from prslib.report.build import executed_file, write_sums

REPORTED = "seeds"  # the profile with the most seeds on data in the repository
NARROW = 700  # pixels; pictures up to this width fit on a phone
ANSWER = "answer"  # the tag of the cell that answers the notebook's question
MADE_BY = (
    "*This page shows the output of [a notebook]({notebook}), run with the parameters of the "
    "profile `{profile}`. The [summary](README.md#summary) explains the terms. "
    "[All questions and answers](README.md).*"
)


def write_article(profile: str, name: str, folder: Path) -> None:
    """Write the article of an executed notebook into a folder, and list its digest."""
    code = relpath(notebook_file(name), folder)
    made_by = MADE_BY.format(notebook=code, profile=profile)
    pictures = relpath(figures_dir(profile), folder)
    notebook = read(executed_file(profile, name), pictures, made_by)
    text, _ = MarkdownExporter(exclude_input=True).from_notebook_node(notebook)
    text = re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", text)
    text = re.sub(r"\n{3,}", "\n\n", text).replace("](../docs/", "](../")
    file = folder / f"{name}.md"
    with replacing(file) as opened:
        opened.write(f"{text.strip()}\n".encode())
    write_sums(folder, [file])


def read(file: Path, pictures: str, made_by: str) -> NotebookNode:
    """Return an executed notebook whose outputs are Markdown, with its answer on top.

    Outputs that need a running kernel, such as sliders, and printed text are left out.
    """
    notebook = nbformat.read(file, as_version=4)
    cells, answers = [], []
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        texts = [as_markdown(output, pictures) for output in cell.get("outputs", [])]
        if cell.cell_type == "code":
            cell.outputs = [show(text) for text in texts if text]
        if ANSWER in tags:
            answers += texts
        else:
            cells.append(cell)
    title, _, text = cells[0].source.partition("\n")
    cells[0].source = "\n\n".join([title, *answers, made_by, text.strip()])
    notebook.cells = cells
    return notebook


def as_markdown(output: NotebookNode, pictures: str) -> str:
    """Return a picture, text or table of a notebook as Markdown, "" for other outputs."""
    data = output.get("data", {})
    if "image/png" in data:
        return link_picture(output.metadata["image/png"], pictures)
    return data.get("text/markdown") or strip_table(data.get("text/html", ""))


def show(text: str) -> NotebookNode:
    """Return Markdown as an output of a cell."""
    return nbformat.v4.new_output("display_data", {"text/markdown": text})


def link_picture(about: dict, folder: str) -> str:
    """Return a picture as HTML, with its narrow form for phones if there is one."""
    alt, width = html.escape(about["alt"]), about["width"]
    size = "narrow" if width <= NARROW else "wide"
    source = f'src="{folder}/{about["file"]}"'
    image = f'<img alt="{alt}" {source} width="{width}" class="{size}">'
    if "narrow" not in about:
        return f"<p>{image}</p>"
    narrow = f'srcset="{folder}/{about["narrow"]}"'
    source = f'<source media="(max-width: 600px)" {narrow}>'
    return f"<picture>\n{source}\n{image}\n</picture>"


def strip_table(text: str) -> str:
    """Return pandas' HTML table with its cells, spans and bold numbers only.

    A caption becomes a line above it.
    """
    caption = re.compile(r"(<table[^>]*>)\s*<caption>(.*?)</caption>", re.DOTALL)
    text = re.sub(r"<style.*?</style>|</?div>", "", text, flags=re.DOTALL)
    text = re.sub(r' (?:id|class|border|style|[vh]align)="[^"]*"', "", text)
    text = re.sub(r"\s+>", ">", text)
    text = re.sub(r">(?:NaN|None|&nbsp;)</", "></", text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    text = caption.sub(r"\2\n\n\1", text)
    return re.sub(r"\n(<t[hd]\b|</tr)", r"\1", text).strip()


if __name__ == "__main__":
    for name in known_notebooks(REPORTED):
        if executed_file(REPORTED, name).is_file():
            write_article(REPORTED, name, project_root() / "docs" / "report")
