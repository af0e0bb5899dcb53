"""Build the documentation site of a profile: ``python docs/build.py --profile quick``.

The notebooks are not executed again: what `make figures` left in the cache becomes
articles.
"""

import argparse
import base64
import os
import re
import shutil
from pathlib import Path

import nbformat
from answers import TEXTS, answers, opening
from articles import REPORTED, as_markdown
from memories import memories, script
from sphinx.cmd.build import build_main

from prslib.paths import PACKAGE, cache_dir, figures_dir
from prslib.report.build import executed_file

DOCS = Path(__file__).resolve().parent
NOTEBOOK = re.compile(  # a link to it, or to the article in the repository
    r"\[([^]]*)\]\((?:(?:\.\./notebooks/)?(\w+)\.ipynb|(\.\./)?report/(\w+)\.md)\)"
)
PICTURE = re.compile(r"\.\./figures/([^)\s\"]+)")
EXECUTED = "{{download}}`This notebook, executed <../executed/{name}.ipynb>`: code and outputs."
BINDER = "https://mybinder.org/v2/gh/{repository}/HEAD?labpath=notebooks/{name}.ipynb"
SEARCHED = {  # words for which the search lists a page first
    "articles/rho_sweep": ["rho", "power of allocation"],
    "articles/precision_recall": ["threshold", "calibration"],
    "articles/schedules_and_memory": ["memory size"],
    "articles/tail_forgetting": ["forgetting"],
    "articles/when_it_pays": ["imbalance", "should I balance"],
    "extending": ["own sampler", "custom sampler"],
    "gpu_and_cluster": ["GPU", "cluster"],
    "losses/index": ["loss", "reweighting"],
    "own_data": ["own data", "own labels", "preview"],
    "samplers/index": ["which sampler"],
}
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
    pictures = source / "_static" / "figures"
    for folder in (source, pages):
        shutil.rmtree(folder, ignore_errors=True)
    aside = shutil.ignore_patterns("__pycache__", "lab", "report")
    shutil.copytree(DOCS, source, ignore=aside)
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
            picture = pictures / name
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(figures_dir(".") / name, picture)
        text = PICTURE.sub(r"_static/figures/\1", text)
        title, _, text = relinked(text, notebooks, "articles/").partition("\n")
        words = searched(file.relative_to(source).with_suffix("").as_posix())
        file.write_text(f"{title}{words}\n{text}", encoding="utf-8")
    data_file = source / "_static" / "memories_data.js"
    data_file.write_text(script(memories()), encoding="utf-8")
    articles = source / "articles"
    articles.mkdir()
    listed = ARTICLES.format(profile=profile, names="\n".join(notebooks))
    (articles / "index.md").write_text(listed, encoding="utf-8")
    for name, file in notebooks.items():
        notebook = nbformat.read(file, 4)
        notebook.metadata.pop("papermill", None)  # it names folders of this machine
        executed = source / "executed" / file.name
        executed.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, executed)
        save_pictures(notebook, pictures / profile, figures_dir(profile))
        shown = f"../_static/figures/{profile}/"
        text = as_markdown(notebook, pictures=shown, site=True)
        text = relinked(text, notebooks).replace("](../docs/", "](../")
        title, _, text = text.partition("\n")
        executed_link = EXECUTED.format(name=name)
        added = f"*{executed_link}{on_binder(name)}*" + searched(f"articles/{name}")
        if profile == REPORTED:  # of which the answers are
            added = f"{opening(answers()[name])}\n\n{added}"
        page = f"{title}\n\n{added}\n{text}\n"
        (articles / f"{name}.md").write_text(page, encoding="utf-8")
    if build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(pages)]):
        raise SystemExit(
            "Sphinx stopped, or warned of what is above; mend it, then build again"
        )
    return pages / "index.html"


def searched(page: str) -> str:
    """Return the entries of a page that lift it in the search."""
    words = SEARCHED.get(page, ())
    return "".join(f"\n\n```{{index}} ! {word}\n```\n" for word in words)


def on_binder(name: str) -> str:
    """Return a link that runs a notebook of the public repository, if this is one's build.

    GitHub names the repository in the environment of a build; Binder reads
    ``environment.yml``.
    """
    repository = os.environ.get("GITHUB_REPOSITORY")
    if not repository or os.environ.get("GITHUB_SERVER_URL") != "https://github.com":
        return ""
    address = BINDER.format(repository=repository, name=name)
    return f" [Run it on Binder]({address}), where nothing has to be installed."


def relinked(text: str, notebooks, folder: str = "") -> str:
    """Let links to notebooks lead to their articles; without one the words remain."""

    def lead(link: re.Match) -> str:
        words, name, up, article = link.groups(default="")
        name = name or article
        place = f"{up}{folder}"
        if name == "README":  # of the articles
            return f"[{words}]({place}index.md)"
        return f"[{words}]({place}{name}.md)" if name in notebooks else words

    return NOTEBOOK.sub(lead, text)


def save_pictures(notebook, folder: Path, drawn: Path) -> None:
    """Write the pictures of an executed notebook into a folder, narrow ones from `drawn`."""
    folder.mkdir(parents=True, exist_ok=True)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if picture := output.get("data", {}).get("image/png"):
                about = output.metadata["image/png"]
                file = folder / about["file"]
                file.write_bytes(base64.b64decode(picture))
                if narrow := about.get("narrow"):
                    shutil.copy(drawn / narrow, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--profile", default=REPORTED, help="a folder in params/ (%(default)s)"
    )
    print(build(parser.parse_args().profile))
