"""The documentation and JupyterLab as a reader meets them, in a browser where there is one."""

import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import unquote

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from prslib.paths import project_root

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE = 120.0  # seconds for a kernel to start and to run the notebook

RUN_ALL = """
const [path, done] = arguments;
(async () => {
  const app = window.jupyterapp;
  await app.restored;
  const panel = await app.commands.execute('docmanager:open', {path});
  await panel.context.ready;
  await panel.sessionContext.ready;
  await app.commands.execute('notebook:run-all-cells');
  await panel.content.scrollToItem(panel.content.widgets.length - 1);
  return panel.content.widgets
    .filter(cell => cell.model.type === 'code')
    .flatMap(cell => cell.model.outputs.toJSON())
    .filter(output => output.output_type === 'error' || output.name === 'stderr');
})().then(done, error => done([String(error)]));
"""


# what a page at the browser's width gets wrong: it is wider, shows a formula's source,
# or a picture is lost or without words
FAULTS = """
const wide = document.documentElement.scrollWidth > window.innerWidth ? ['too wide'] : [];
const lost = [...document.images].filter(i => !(i.complete && i.naturalWidth && i.alt));
const flat = [...document.querySelectorAll('math')].filter(m => m.offsetParent
  && m.getBoundingClientRect().width < 3);
const text = document.querySelector('article').cloneNode(true);
text.querySelectorAll('pre, code').forEach(code => code.remove());
const raw = text.textContent.includes('$') ? ['raw formula'] : [];
return [...wide, ...raw, ...lost.map(i => i.src), ...flat.map(m => m.textContent)];
"""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDE = f"<table class='dataframe'><tr>{'<td>55.5 ± 2.3</td>' * 40}</tr></table>"
TEXTS = {
    "walkthrough": "# How?\n\n[This](main_results.ipynb) and [that](ledger.ipynb): $s = n^\\rho$.",
    "main_results": "# Does it?\n\n[One](https://example.org/a.ipynb), $\\rho$.\n\n## Rare",
}


def outputs():
    """Return what the cells of notebooks print: a picture, tables, a widget, words on stderr."""
    picture = {"image/png": {"alt": "mAP (%) over tasks", "width": 990}}
    rows = "| $n_i$ | mAP |\n|---|---|\n| CRS | 55.5 ± 2.3 |"
    return [
        new_output("display_data", {"image/png": PNG}, metadata=picture),
        new_output("display_data", {"text/markdown": rows}),
        new_output("display_data", {"text/html": WIDE}),
        new_output("display_data", {WIDGET: {"model_id": "1"}, "text/plain": "VBox()"}),
        new_output("stream", name="stderr", text="a warning"),
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory, python):
    """The pages of two notebooks, as if executed, in a folder with a name of all sorts."""
    pytest.importorskip("myst_nb")
    place = tmp_path_factory.mktemp("site") / "Ort mit ä"
    for name, text in TEXTS.items():
        file = place / "executed" / "smoke" / f"{name}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        code = new_code_cell("draw(everything)", outputs=outputs(), execution_count=1)
        cells, language = (
            [new_markdown_cell(text), code],
            {"language_info": {"name": "python"}},
        )
        write(new_notebook(cells=cells, metadata=language), file)
    environment = {"PRSLIB_CACHE": str(place), "PRSLIB_FIGURES": "figures"}
    built = python("docs/build.py", "--profile", "smoke", **environment)
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip()).parent


def read(file):
    """Return where a page's links and pictures lead and the places in it that have a name."""
    text = file.read_text(encoding="utf-8")
    return re.findall(r'(?:href|src)="([^"]*)"', text), re.findall(
        r'id="([^"]*)"', text
    )


def test_every_link_of_the_site_leads_somewhere(site):
    pages = {file: read(file) for file in site.rglob("*.html")}
    assert {site / "index.html", site / "articles" / "walkthrough.html"} <= pages.keys()
    assert site / "api" / "prslib.make_sampler.html" in pages
    for file, (links, _) in pages.items():
        for link in links:
            target, _, place = unquote(link).partition("#")
            if ":" in target:
                assert target.startswith("https://"), link
                continue
            found = (
                (file.parent / target.partition("?")[0]).resolve() if target else file
            )
            assert found.is_file(), (file, link)
            assert not place or found.suffix != ".html" or place in pages[found][1], (
                file,
                link,
            )


def test_an_article_folds_its_code_and_shows_what_needs_no_kernel(site):
    text = (site / "articles" / "walkthrough.html").read_text(encoding="utf-8")
    assert 'alt="mAP (%) over tasks"' in text
    assert "VBox()" not in text
    assert "a warning" not in text
    assert "draw" in re.search("<details(.*?)</details>", text, re.DOTALL)[1]
    assert '<td class="short">' in text.replace(" row-even", "").replace(" row-odd", "")
    assert text.count("<math") == 2  # in the text, in a table that was printed
    assert "and that: " in text  # the ledger has no article


@pytest.mark.parametrize("width", [1400, 400])
def test_pages_fit_and_show_their_formulas_and_pictures(site, browser, width):
    screen = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    for file in sorted(site.rglob("*.html")):
        if file.stem not in ("genindex", "search"):
            browser.get(file.as_uri())
            assert browser.execute_script(FAULTS) == [], file


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """The address of a JupyterLab that shows a copy of the walkthrough and the questions."""
    for name in ("walkthrough.ipynb", "walkthrough.py", "start.md"):
        shutil.copy(project_root() / "notebooks" / name, tmp_path)
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", str(tmp_path / "workspaces"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        f"--config={project_root() / 'docs' / 'lab' / 'config.py'}",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={tmp_path}",
        "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True",
    ]
    with open(tmp_path / "lab.log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], stdout=log, stderr=log
        )
        try:
            address = f"http://127.0.0.1:{port}/"
            _wait(lambda: _answers(address), "JupyterLab")
            yield address
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def browser(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (BROWSER and DRIVER):
        pytest.skip("no chromium and chromium-driver (Debian's packages) here")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("headless=new", "no-sandbox", "window-size=1400,1200"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={tmp_path / 'profile'}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


def _answers(address):
    try:
        return urllib.request.urlopen(address, timeout=5).status == 200
    except OSError:
        return False


def _wait(ready, what):
    end = time.monotonic() + PATIENCE
    while not (found := ready()):
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.1)
    return found


def test_the_lab_opens_on_the_questions_and_its_sliders_redraw_the_picture(
    lab, browser
):
    browser.get(lab)
    _wait(
        lambda: browser.execute_script("return window.jupyterapp !== undefined"),
        "the page",
    )
    shown = "css selector", ".jp-MarkdownViewer a"
    links = _wait(lambda: browser.find_elements(*shown), "the list of questions")
    assert "What does PRS do with one sample?" in [link.text for link in links]
    listed = {
        item.text
        for item in browser.find_elements("css selector", ".jp-DirListing-itemText")
    }
    assert listed >= {"start.md", "walkthrough.ipynb"}
    assert "walkthrough.py" not in listed
    assert browser.execute_async_script(RUN_ALL, "walkthrough.ipynb") == []
    handles = _wait(
        lambda: browser.find_elements("css selector", ".noUi-handle"), "the sliders"
    )
    assert len(handles) == 3
    for handle in handles:
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", handle)
        before = _shown(browser)
        handle.send_keys("\ue014")  # the right arrow
        _wait(
            lambda before=before: _shown(browser) not in (None, before), "a new picture"
        )


def _shown(browser):
    """Return the address of the live picture, None while it is loading."""
    return browser.execute_script(
        "const image = document.querySelector('img.widget-image');"
        "return image && image.complete && image.naturalWidth > 0 ? image.src : null;"
    )
