"""Build the documentation site of a profile: ``python docs/build.py --profile quick``.

The site consists of this folder's pages and of the notebooks that `make figures` has
executed. Nothing is executed again.
"""

import argparse
import os
import re
import shutil
from pathlib import Path

import nbformat
from articles import REPORTED, read
from memories import memories, script
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
BINDER = " [Run it on Binder](https://mybinder.org/v2/gh/{}/HEAD?labpath=notebooks/{}.ipynb)."


def build(profile: str) -> Path:
    """Write the pages of a profile, return the first; SystemExit if Sphinx warns."""
    place = cache_dir() / "docs" / profile
    source, pages = place / "docs", place / "html"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("__pycache__", "lab"))
    shutil.copy(PACKAGE.parent / "LICENSE", place)  # to which a page links
    (source / "_static" / "figures").symlink_to(figures_dir("."))
    data_file = source / "_static" / "memories_data.js"
    data_file.write_text(script(memories()), encoding="utf-8")
    add_notebooks(profile, source / "report")
    names = "|".join(known_notebooks(DEFAULT))
    for file in source.rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        text = re.sub(rf"\b({names})\.md\b", r"\1.ipynb", text)
        text = text.replace("../figures/", "_static/figures/")
        file.write_text(text, encoding="utf-8")
    if build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(pages)]):
        raise SystemExit("Sphinx stopped, or warned of what is above")
    return pages / "index.html"


def add_notebooks(profile: str, folder: Path) -> None:
    """Put executed notebooks, their code folded, in place of the articles."""
    made_by = f"*The notebook with the parameters of the profile `{profile}`.*"
    repository = os.environ.get("GITHUB_REPOSITORY")  # set in a build on GitHub
    contents = folder / "README.md"
    text = contents.read_text(encoding="utf-8")
    names = re.findall(r"\]\((\w+)\.md\)", text)
    if not any(executed_file(profile, name).is_file() for name in names):
        what = f"expected executed notebooks of {profile}, got none"
        raise SystemExit(f"{what}; run `make figures PROFILE={profile}` first")
    toctree = "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])
    contents.write_text(f"{text}\n{toctree}\n", encoding="utf-8")
    for name in names:
        file = executed_file(profile, name)
        if not file.is_file():  # a profile need not have all
            file = notebook_file(name)
        binder = BINDER.format(repository, name) if repository else ""
        notebook = read(file, f"../_static/figures/{profile}", made_by + binder)
        for cell in notebook.cells:
            cell.metadata = {"tags": ["hide-input"]}
        text = nbformat.writes(notebook).replace("](../docs/", "](../")
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
        (folder / f"{name}.md").unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default=REPORTED, choices=known_profiles())
    print(build(parser.parse_args().profile))
