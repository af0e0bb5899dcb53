"""The documentation as a reader meets it, in a browser where there is one."""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from prslib.paths import project_root
from prslib.previews import preview

# what a page gets wrong: it is wider, or a picture is lost
FAULTS = """
const wide = document.documentElement.scrollWidth > window.innerWidth ? ['too wide'] : [];
const lost = [...document.images].filter(i => !(i.complete && i.naturalWidth && i.alt));
return [...wide, ...lost.map(i => i.src)];
"""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
WIDE = f"<table class='dataframe'><tr>{'<td>55.5 ± 2.3</td>' * 40}</tr></table>"
DATA = [
    {"text/markdown": "| $n_i$ | mAP |\n|---|---|\n| CRS | 55.5 ± 2.3 |"},
    {"text/html": WIDE},
    {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"},
]
PICTURES = [
    {"alt": "mAP (%) over tasks", "width": 990, "file": "curve.png"},
    {"alt": "by rho", "width": 990, "file": "rho.png", "narrow": "thin.png"},
]
PUBLIC = {  # as GitHub and .github/workflows/pages.yml set them
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "someone/prs",
    "SITE_URL": "https://someone.github.io/prs",
}
TEXT = "# How?\n\n[That](ledger.ipynb), [this](../docs/own_data.md): $s = n^\\rho$."


NAMES = ["walkthrough", "ledger"]
API = """# API
```{eval-rst}
.. currentmodule:: prslib
.. autosummary::
   :toctree: api

   make_sampler
```
"""
PAGES = {
    "index.md": "# Home\n```{toctree}\napi\nown_data\nnotebooks/start\n```\n",
    "api.md": API,
    "own_data.md": "# Your own data\n",
}
START = "# Notebooks\n\n[How?](walkthrough.ipynb) [That](ledger.ipynb)\n"
BUILD = """import sys
from pathlib import Path
sys.path.insert(0, "docs")
import build
build.DOCS = Path(sys.argv[1])
build.NOTEBOOKS = build.DOCS.parent
build.known_notebooks = lambda profile: sys.argv[2:]
print(build.build("smoke"))
"""


def write_pages(folder):
    """Write a site of few pages, configured as the whole."""
    docs = project_root() / "docs"
    for name in ("_static", "_templates"):
        shutil.copytree(docs / name, folder / name)
    for name in ("conf.py", "memories.html"):
        shutil.copy(docs / name, folder)
    for name, text in PAGES.items():
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory, own_folders):
    """A site of few pages, the notebooks as if executed; Sphinx checks its links."""
    pytest.importorskip("myst_nb")
    cache = tmp_path_factory.mktemp("site")
    write_pages(cache / "pages")
    (cache / "start.md").write_text(START)
    figures = cache / "figures"
    (figures / "smoke").mkdir(parents=True)
    for name in ("curve", "rho", "thin"):
        (figures / "smoke" / f"{name}.png").write_bytes(b64decode(PNG))
    outputs = [new_output("display_data", data) for data in DATA]
    for about in PICTURES:
        metadata = {"image/png": about}
        outputs.append(
            new_output("display_data", {"image/png": PNG}, metadata=metadata)
        )
    code = new_code_cell("draw(everything)", outputs=outputs)
    language = {"language_info": {"name": "python"}}
    notebook = new_notebook(cells=[new_markdown_cell(TEXT), code], metadata=language)
    folder = cache / "executed" / "smoke"
    folder.mkdir(parents=True)
    for name in NAMES:
        write(notebook, folder / f"{name}.ipynb")
    folders = {"PRSLIB_CACHE": str(cache), "PRSLIB_FIGURES": str(figures)}
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(cache / "pages"), *NAMES],
        cwd=project_root(),
        env=os.environ | folders | PUBLIC,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip()).parent


def test_a_notebook_folds_its_code_and_shows_what_needs_no_kernel(site):
    assert (site / "api" / "prslib.make_sampler.html").is_file()
    text = (site / "notebooks" / "walkthrough.html").read_text(encoding="utf-8")
    assert 'alt="mAP (%) over tasks"' in text
    assert "VBox()" not in text
    assert "everything" in re.search("<details(.*?)</details>", text, re.DOTALL)[1]
    assert text.count("<math") == 2  # in the text, in a table that was printed
    assert 'href="ledger.html"' in text and 'href="../own_data.html"' in text


def test_nothing_is_loaded_from_elsewhere(site):
    loads = re.compile(
        r"""<(?:script|link rel="stylesheet"|img)[^>]*="(?:https?:)?//"""
    )
    for page in site.rglob("*.html"):
        assert loads.search(page.read_text(encoding="utf-8")) is None, page


def test_a_public_site_leads_to_binder_and_to_its_repository(site):
    text = (site / "notebooks" / "walkthrough.html").read_text(encoding="utf-8")
    binder = "https://mybinder.org/v2/gh/someone/prs/HEAD?labpath=notebooks/{}.ipynb"
    assert f'href="{binder.format("walkthrough")}"' in text
    assert 'href="https://github.com/someone/prs"' in text
    page = "https://someone.github.io/prs/notebooks/walkthrough.html"
    assert f'rel="canonical" href="{page}"' in text


def test_the_memories_behind_the_sliders_are_the_samplers_own(program):
    memories = program("memories")
    text = (memories.DOCS / "memories.html").read_text("utf-8")
    table = json.loads(re.search("const MEMORIES = (.*);", text)[1])
    stream = memories.draw_stream(30)
    counts = preview(stream, 50, ["PRS", "CRS"], rho=0.5).class_counts
    assert table["memory"]["PRS 30 50 0.5"] == counts["PRS"].tolist()
    assert table["memory"]["CRS 30 50"] == counts["CRS"].tolist()
    assert table["stream"]["30"] == stream.sum(axis=0).tolist()


def set_width(browser, width):
    screen = {"width": width, "height": 900, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def test_pages_fit_a_phone_and_show_their_pictures(site, browser):
    set_width(browser, 390)
    for file in [*site.glob("*.html"), site / "notebooks" / "walkthrough.html"]:
        if file.stem not in ("genindex", "search"):
            browser.get(file.as_uri())
            assert browser.execute_script(FAULTS) == [], file


SHOWN = "return document.querySelector('picture img').currentSrc.split('/').at(-1)"


@pytest.mark.parametrize(("width", "picture"), [(358, "thin.png"), (800, "rho.png")])
def test_a_phone_shows_the_narrow_form_of_a_picture(site, browser, width, picture):
    set_width(browser, width)
    browser.get((site / "notebooks" / "walkthrough.html").as_uri())
    assert browser.execute_script(SHOWN) == picture


# the shares of the table of memories.html, by row
SHARES = """
const rows = [...document.querySelectorAll('.shares tbody tr')];
return Object.fromEntries(rows.map(
  (row) => [row.cells[0].innerText, [...row.cells].slice(1, 4).map(c => parseInt(c.innerText))]
));
"""
MOVE = """
const slider = document.querySelector(`input[name=${arguments[0]}]`);
slider.value = arguments[1];
slider.dispatchEvent(new Event('input'));
"""


def test_sliders_start_where_the_text_says_and_move_the_memories(site, browser):
    browser.get((site / "memories.html").as_uri())
    outputs = "return [...document.querySelectorAll('output')].map(o => o.value)"
    assert browser.execute_script(outputs) == ["100", "0", "200"]
    balanced = browser.execute_script(SHARES)
    assert balanced["CRS"][2] < 10 < 20 < balanced["PRS"][2]
    browser.execute_script(MOVE, "rho", 5)
    as_stream = browser.execute_script(SHARES)
    assert browser.execute_script(outputs) == ["100", "1", "200"]
    assert as_stream["PRS"][2] < 10
    assert as_stream["CRS"] == balanced["CRS"]  # it has no rho
