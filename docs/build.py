"""Build the documentation site of a profile: ``python docs/build.py --profile quick``.

The notebooks are not executed again: what `make figures` left in the cache becomes
articles.
"""

import argparse
import base64
import re
import shutil
from pathlib import Path

import nbformat
from articles import REPORTED
from renew import TEXTS
from sphinx.cmd.build import build_main

from prslib.paths import PACKAGE, cache_dir, figures_dir
from prslib.report.build import executed_file

DOCS = Path(__file__).resolve().parent
NOTEBOOK = re.compile(  # a link to it, or to the article in the repository
    r"\[([^]]*)\]\((?:(?:\.\./notebooks/)?(\w+)\.ipynb|report/(\w+)\.md)\)"
)
PICTURE = re.compile(r"\.\./figures/([^)\s]+)")
IMAGE = "```{{image}} {file}\n:alt: {alt}\n:width: {width}px\n```"
WIDGET = "application/vnd.jupyter.widget-view+json"
ARTICLES = """# The articles

Each article is a notebook that asks one question. They were executed with the
parameters of the profile *{profile}*. The code of every picture unfolds above it.

```{{toctree}}
:maxdepth: 1

{names}
```
"""


def build(profile: str) -> Path:
    """Write the pages of a profile, return the first; SystemExit if Sphinx warns."""
    place = cache_dir() / "docs" / profile
    source, pages = place / "docs", place / "html"
    for folder in (source, pages):
        shutil.rmtree(folder, ignore_errors=True)
    aside = shutil.ignore_patterns("__pycache__", "lab", "report")
    shutil.copytree(DOCS, source, ignore=aside)
    for code in (
        "prslib/samplers",
        "prslib/losses",
        "examples",
    ):  # what pages show of it
        shutil.copytree(PACKAGE.parent / code, place / code, dirs_exist_ok=True)
    shutil.copy(PACKAGE.parent / "LICENSE", place)  # to which a page links
    files = {name: executed_file(profile, name) for name in TEXTS}
    notebooks = {name: file for name, file in files.items() if file.is_file()}
    if not notebooks:
        raise SystemExit(
            f"expected executed notebooks in {executed_file(profile, 'any').parent}, "
            f"got none; run `make figures PROFILE={profile}` first"
        )
    for file in source.rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        for name in PICTURE.findall(text):
            picture = place / "figures" / name
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(figures_dir(".") / name, picture)
        file.write_text(relinked(text, notebooks, "articles/"), encoding="utf-8")
    articles = source / "articles"
    articles.mkdir()
    listed = ARTICLES.format(profile=profile, names="\n".join(notebooks))
    (articles / "index.md").write_text(listed, encoding="utf-8")
    for name, file in notebooks.items():
        page = article(nbformat.read(file, 4), articles, notebooks)
        nbformat.write(page, articles / f"{name}.ipynb")
    if build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(pages)]):
        raise SystemExit(
            "Sphinx stopped, or warned of what is above; mend it, then build again"
        )
    return pages / "index.html"


def relinked(text: str, notebooks, folder: str = "") -> str:
    """Let links to notebooks lead to their articles; without one the words remain."""

    def lead(link: re.Match) -> str:
        words, name, article = link.groups()
        name = name or article
        if name == "README":  # of the articles
            return f"[{words}]({folder}index.md)"
        return f"[{words}]({folder}{name}.ipynb)" if name in notebooks else words

    return NOTEBOOK.sub(lead, text)


def article(notebook, folder: Path, notebooks):
    """Return an executed notebook as an article: code folded, pictures in files.

    Widgets, which only a running kernel moves, and what was said on stderr are left
    out.
    """
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = relinked(cell.source, notebooks)
            continue
        cell.metadata = {"tags": ["hide-input"]}
        cell.outputs = [
            one
            for one in cell.outputs
            if one.get("name") != "stderr" and WIDGET not in data(one)
        ]
        for output in cell.outputs:
            if "image/png" in data(output):
                about = output.metadata["image/png"]
                picture = base64.b64decode(output.data["image/png"])
                (folder / about["file"]).write_bytes(picture)
                output.data = {"text/markdown": IMAGE.format(**about)}
            elif "text/markdown" in data(output):
                text = relinked(output.data["text/markdown"], notebooks)
                output.data["text/markdown"] = text
    return notebook


def data(output) -> dict:
    """Return an output's forms by their MIME type, none for a stream."""
    return output.get("data", {})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--profile", default=REPORTED, help="a folder in params/ (%(default)s)"
    )
    print(build(parser.parse_args().profile))
