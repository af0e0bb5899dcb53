"""Write executed notebooks as articles in Markdown, which need no installation.

An article has the notebook's text, tables and pictures, and none of its code. Pictures
are links to the files that the notebook saved. The same results give the same bytes:
cells with the tag `timed` are left out, and so is what a notebook prints.
"""

import base64
import html
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.paths import cache_dir, figures_dir, params_file, project_root

if TYPE_CHECKING:
    from nbformat import NotebookNode

REPORTED = "seeds"  # the profile with the most seeds on data that everyone has
EVERYWHERE = "quick"  # the profile of the notebooks that the other does not have
LINK = re.compile(r"\]\((?:\.\./notebooks/)?(\w+)\.ipynb\)")
BOLD = re.compile(r"([^{}]*)\{\s*font-weight: bold;\s*\}")
# of pandas' tables
CAPTION = re.compile(r"<caption>(.*?)</caption>", re.DOTALL)
BODY = re.compile(r"<(thead|tbody)>(.*?)</\1>", re.DOTALL)
ROW = re.compile(r"<tr\b[^>]*>(.*?)</tr>", re.DOTALL)
CELL = re.compile(r"<(t[hd])\b([^>]*)>(.*?)</\1>", re.DOTALL)
SPAN = re.compile(r' (?:col|row)span="\d+"')
TIMED = "timed"  # the tag of cells that say how long something took
FOOT = (
    "*Made by [the notebook]({notebook}) with the parameters of the profile "
    "`{profile}`; its code is there. [All questions and answers](README.md).*"
)


def executed_file(profile: str, name: str) -> Path:
    """Return where a notebook's executed copy is kept."""
    return cache_dir() / "executed" / profile / f"{name}.ipynb"


def profile_of(name: str) -> str:
    """Return the profile whose figures a notebook's article shows."""
    has_parameters = params_file(REPORTED, name).is_file()
    return REPORTED if has_parameters else EVERYWHERE


def article_file(name: str) -> Path:
    """Return a file in ``docs/report``, or ``report`` in ``PRSLIB_FIGURES`` if that is set."""
    elsewhere = bool(os.environ.get("PRSLIB_FIGURES"))
    docs = project_root() / "docs" / "report"
    return (figures_dir("report") if elsewhere else docs) / f"{name}.md"


def write(profile: str, name: str) -> Path:
    """Write the article of an executed notebook; return its file."""
    import nbformat  # slow to load, and not needed to tell what is up to date

    file = article_file(name)
    notebook = nbformat.read(executed_file(profile, name), as_version=4)
    text = article(notebook, profile, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def article(notebook: "NotebookNode", profile: str, name: str) -> str:
    """Return the text, tables and links to pictures of an executed notebook."""
    folder, saved = article_file(name).parent, figures_dir(profile)
    pictures = {file.read_bytes(): file for file in saved.glob(f"{name}_*.png")}
    blocks = []
    for cell in notebook.cells:
        if TIMED in cell.metadata.get("tags", []):
            continue
        if cell.cell_type == "markdown":
            blocks.append(relinked(cell.source))
            continue
        for output in cell.get("outputs", []):
            if output.output_type == "execute_result" and ".head(" in cell.source:
                continue  # a look at a frame, for those who go on in the notebook
            data = output.get("data", {})
            if "image/png" in data:
                file = pictures.get(base64.b64decode(data["image/png"]))
                if file is None:
                    raise ValueError(
                        f"expected each picture of {name} in {saved}, one is not "
                        f"there; run `prslib figures {name} --profile {profile}`"
                    )
                about = output.metadata.get("image/png", {}).get("alt", file.stem)
                blocks.append(f"![{_escaped(about)}]({_from(folder, file)})")
            else:
                blocks.append(_text_of(output))
    code = project_root() / "notebooks" / f"{name}.ipynb"
    foot = FOOT.format(notebook=_from(folder, code), profile=profile)
    title, *rest = filter(None, (block.strip() for block in blocks))
    head, _, opening = title.partition("\n")
    return "\n\n".join(filter(None, [head, foot, opening.strip(), *rest])) + "\n"


def relinked(text: str) -> str:
    """Let links to notebooks lead to their articles."""
    return LINK.sub(r"](\1.md)", text)


def _text_of(output: "NotebookNode") -> str:
    """Return a cell's Markdown or table, "" of what only a running notebook needs."""
    data = output.get("data", {})
    if "text/markdown" in data:
        text = relinked(data["text/markdown"])
        if data.get("text/plain", "").startswith("Settings("):
            summary = "<summary>Parameters</summary>"
            return f"<details>{summary}\n\n{text.strip()}\n\n</details>"
        return text
    return plain_table(data["text/html"]) if "text/html" in data else ""


def plain_table(text: str) -> str:
    """Return pandas' HTML table with its cells, spans and bold numbers alone."""
    style, _, table = text.rpartition("</style>")
    bold = set(re.findall(r"#(\w+)", " ".join(BOLD.findall(style))))

    def cell(match: re.Match) -> str:
        tag, attributes, content = match.groups()
        words = _words(content)
        if bold.intersection(re.findall(r'id="(\w+)"', attributes)):
            words = f"<b>{words}</b>"
        return f"<{tag}{''.join(SPAN.findall(attributes))}>{words}</{tag}>"

    lines = [f"{_words(caption)}\n" for caption in CAPTION.findall(table)]
    lines.append("<table>")
    for name, body in BODY.findall(table):
        rows = ROW.findall(body)
        cells = ["".join(map(cell, CELL.finditer(row))) for row in rows]
        lines += [f"<{name}>", *(f"<tr>{row}</tr>" for row in cells), f"</{name}>"]
    return "\n".join([*lines, "</table>"])


def _words(text: str) -> str:
    """Return the words of a piece of HTML, without its tags."""
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())
    return html.escape(words, quote=False)


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]_*])", r"\\\1", text)


def _from(folder: Path, file: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()
