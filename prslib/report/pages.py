"""The executed notebooks as web pages, to be read without JupyterLab."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from tqdm import tqdm

from prslib.paths import cache_dir, project_root
from prslib.runs.execution import executed_file

# nbconvert's own page; the code is behind a line to click on, and the other pages stand on top
PAGE = """
{%- extends 'lab/index.html.j2' -%}
{%- block html_head -%}
{{ super() }}
<style>
  main { max-width: 72rem; margin: 0 auto; }
  main > nav, summary { font: var(--jp-ui-font-size1) / 1.7 var(--jp-ui-font-family); }
  main > nav { padding: 0.5rem 0.3rem 0.8rem; }
  main > nav a { margin-right: 0.6rem; color: var(--jp-content-link-color); }
  main > nav a:not([href]) { color: inherit; font-weight: bold; }
  main img { max-width: 100%; }
  summary { cursor: pointer; color: var(--jp-ui-font-color2); }
</style>
{%- endblock html_head -%}
{%- block body_header -%}
{{ super() }}
<nav>profile <i>{{ resources.profile }}</i>:
{% for page in resources.pages -%}
<a{% if page != resources.metadata.name %} href="{{ page }}.html"{% endif %}>
{{- "README" if page == "index" else page }}</a>
{% endfor -%}
</nav>
{%- endblock body_header -%}
{%- block input_group -%}
<details><summary>code</summary>{{ super() }}</details>
{%- endblock input_group -%}
"""
FIRST = "index"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s]+(?=\))")  # where a relative link of a text leads


def report_dir(profile: str) -> Path:
    """Return the folder of a profile's pages."""
    return cache_dir() / "report" / profile


def write_report(profile: str, names: Sequence[str]) -> list[str]:
    """Write a page for every executed notebook of a profile, and the README as the first page.

    Parameters
    ----------
    profile : str
        "smoke", "quick", "seeds" or "paper".
    names : sequence of str
        Notebooks of the profile.

    Returns
    -------
    list of str
        The notebooks that have not been executed, and so have no page.

    Raises
    ------
    FileNotFoundError
        If none has been executed; nothing is written then.

    Notes
    -----
    The pages are ``<name>.html`` in `report_dir`, the first is ``index.html``. Pictures are in the
    pages themselves; formulas are set by MathJax, which the browser fetches.
    """
    done = [name for name in names if executed_file(profile, name).is_file()]
    if not done:
        raise FileNotFoundError(
            f"expected executed notebooks in {executed_file(profile, 'any').parent}, got none; run "
            f"`make figures PROFILE={profile}` first"
        )
    folder, root = report_dir(profile), project_root()
    folder.mkdir(parents=True, exist_ok=True)
    exporter = HTMLExporter(
        raw_template=PAGE,
        embed_images=True,
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    shared = {"profile": profile, "pages": [FIRST, *done]}
    for name in tqdm(shared["pages"], desc="writing", unit="page"):
        if name == FIRST:
            readme = (root / "README.md").read_text(encoding="utf-8")
            page, home = new_notebook(cells=[new_markdown_cell(readme)]), root
        else:
            page, home = nbformat.read(executed_file(profile, name), 4), root / "notebooks"
        _prepare(page, home, folder, done)
        here = {"metadata": {"name": name, "path": str(root)}}
        body, _ = exporter.from_notebook_node(page, shared | here)
        (folder / f"{name}.html").write_text(body, encoding="utf-8")
    return [name for name in names if name not in done]


def _prepare(page: NotebookNode, home: Path, folder: Path, pages: Sequence[str]) -> None:
    """Give a page the title that its text has, and let its relative links lead from ``folder``."""

    def led(link: re.Match) -> str:
        target = (home / link.group()).resolve()
        if target.suffix == ".png":  # is put into the page, which looks for it from the root
            return os.path.relpath(target, project_root())
        if target.suffix == ".ipynb" and target.stem in pages:
            return f"{target.stem}.html"
        return os.path.relpath(target, folder)

    texts = [cell for cell in page.cells if cell.cell_type == "markdown"]
    page.metadata["title"] = texts[0].source.splitlines()[0].lstrip("# ")
    for cell in texts:
        cell.source = LINK.sub(led, cell.source)
