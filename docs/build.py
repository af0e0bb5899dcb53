"""Build the documentation site of a profile: ``python docs/build.py --profile quick``.

The site consists of this folder's pages, including the committed articles, and of the
notebooks that `make figures` has executed. Nothing is executed again.
"""

import argparse
import os
import shutil
from pathlib import Path

import nbformat
from articles import REPORTED, read
from sphinx.cmd.build import build_main

from prslib.paths import (
    DEFAULT,
    PACKAGE,
    cache_dir,
    figures_dir,
    known_notebooks,
    known_profiles,
    notebook_file,
)
from prslib.report.build import executed_file

DOCS = Path(__file__).resolve().parent
NOTEBOOKS = DOCS.parent / "notebooks"
MADE_BY = "*Executed with the parameters of the profile `{}`.*"
ARTICLE = " [The article](../report/{}.md) has the results of the profile `{}`."
BINDER = " [Run it on Binder](https://mybinder.org/v2/gh/{}/HEAD?labpath=notebooks/{}.ipynb)."


def build(profile: str) -> Path:
    """Write the pages of a profile; return the first one, or exit if Sphinx warns."""
    place = cache_dir() / "docs" / profile
    source, pages = place / "docs", place / "html"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("__pycache__", "lab"))
    shutil.copy(PACKAGE.parent / "LICENSE", place)  # linked by a page
    (source / "_static" / "figures").symlink_to(figures_dir("."))
    add_notebooks(profile, source / "notebooks")
    for file in source.rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        text = text.replace("../figures/", "_static/figures/")
        text = text.replace("../notebooks/", "notebooks/")
        file.write_text(text, encoding="utf-8")
    if build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(pages)]):
        raise SystemExit("Sphinx stopped, or warned of what is above")
    return pages / "index.html"


def add_notebooks(profile: str, folder: Path) -> None:
    """Add the notebooks as pages, with folded code and, if executed, their outputs."""
    repository = os.environ.get("GITHUB_REPOSITORY")  # set in a build on GitHub
    names = known_notebooks(DEFAULT)
    contents = (NOTEBOOKS / "start.md").read_text(encoding="utf-8")
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    folder.mkdir()
    (folder / "start.md").write_text(f"{contents}\n{toctree}\n", encoding="utf-8")
    for name in names:
        made_by = MADE_BY.format(profile)
        if (DOCS / "report" / f"{name}.md").is_file():
            made_by += ARTICLE.format(name, REPORTED)
        if repository:
            made_by += BINDER.format(repository, name)
        file = executed_file(profile, name)
        if not file.is_file():
            file = notebook_file(name)
        notebook = read(file, f"../_static/figures/{profile}", made_by)
        for cell in notebook.cells:
            cell.metadata = {"tags": ["hide-input"]}
        text = nbformat.writes(notebook).replace("](../docs/", "](../")
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default=DEFAULT, choices=known_profiles())
    print(build(parser.parse_args().profile))
