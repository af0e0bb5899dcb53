"""The documentation and JupyterLab as a reader meets them, in a browser where there is one."""

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from prslib.paths import project_root

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE = 120  # seconds for JupyterLab and a kernel to start and to run the notebook

RUN_ALL = """
const [path, done] = arguments;
(async () => {
  const {commands, restored} = window.jupyterapp;
  await restored;
  const panel = await commands.execute('docmanager:open', {path});
  await panel.context.ready;
  await panel.sessionContext.ready;
  await commands.execute('notebook:run-all-cells');
  await panel.content.scrollToItem(panel.content.widgets.length - 1);
})().then(() => done(null), error => done(String(error)));
"""
SHOWN = "return document.querySelector('img.widget-image')?.src"  # of the sliders
# what a page gets wrong: it is wider, or a picture is lost
FAULTS = """
const wide = document.documentElement.scrollWidth > window.innerWidth ? ['too wide'] : [];
const lost = [...document.images].filter(i => !(i.complete && i.naturalWidth && i.alt));
return [...wide, ...lost.map(i => i.src)];
"""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
WIDE = f"<table class='dataframe'><tr>{'<td>55.5 ± 2.3</td>' * 40}</tr></table>"
DATA = [
    {"image/png": PNG},
    {"text/markdown": "| $n_i$ | mAP |\n|---|---|\n| CRS | 55.5 ± 2.3 |"},
    {"text/html": WIDE},
    {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"},
]
TEXT = "# How?\n\n[That](ledger.ipynb): $s = n^\\rho$."


@pytest.fixture(scope="module")
def site(tmp_path_factory, python):
    """The pages of one notebook, as if executed; Sphinx checks their links."""
    pytest.importorskip("myst_nb")
    cache = tmp_path_factory.mktemp("site")
    outputs = [new_output("display_data", data) for data in DATA]
    about = {"alt": "mAP (%) over tasks", "width": 990, "file": "curve.png"}
    outputs[0].metadata = {"image/png": about}
    cells = [
        new_markdown_cell(TEXT),
        new_code_cell("draw(everything)", outputs=outputs),
    ]
    file = cache / "executed" / "smoke" / "walkthrough.ipynb"
    file.parent.mkdir(parents=True)
    language = {"language_info": {"name": "python"}}
    write(new_notebook(cells=cells, metadata=language), file)
    environment = {"PRSLIB_CACHE": str(cache), "PRSLIB_FIGURES": "figures"}
    built = python("docs/build.py", "--profile", "smoke", **environment)
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip()).parent


def test_an_article_folds_its_code_and_shows_what_needs_no_kernel(site):
    assert (site / "api" / "prslib.make_sampler.html").is_file()
    text = (site / "articles" / "walkthrough.html").read_text(encoding="utf-8")
    assert 'alt="mAP (%) over tasks"' in text
    assert "VBox()" not in text
    assert "draw" in re.search("<details(.*?)</details>", text, re.DOTALL)[1]
    assert text.count("<math") == 2  # in the text, in a table that was printed
    assert "<p>That: " in text  # the ledger has no article


@pytest.fixture
def browser(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (BROWSER and DRIVER):
        pytest.skip("no chromium and chromium-driver (Debian's packages) here")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("headless=new", "no-sandbox", f"user-data-dir={tmp_path / 'me'}"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


def test_pages_fit_a_phone_and_show_their_pictures(site, browser):
    screen = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    for file in sorted(site.rglob("*.html")):
        if file.stem not in ("genindex", "search"):
            browser.get(file.as_uri())
            assert browser.execute_script(FAULTS) == [], file


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """The address of a JupyterLab that shows a copy of the walkthrough and the questions."""
    for name in ("walkthrough.ipynb", "start.md"):
        shutil.copy(project_root() / "notebooks" / name, tmp_path)
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
    command = [sys.executable, "-m", "jupyterlab", *options]
    with open(tmp_path / "lab.log", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        yield f"http://127.0.0.1:{port}/"
        server.terminate()
        server.wait()


def test_the_sliders_of_the_walkthrough_redraw_its_picture(lab, browser):
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, PATIENCE, ignored_exceptions=[WebDriverException])
    wait.until(lambda page: page.get(lab) is None)  # refused until it has started
    # it opens on the list of questions
    wait.until(lambda page: page.find_elements("css selector", ".jp-MarkdownViewer a"))
    assert browser.execute_async_script(RUN_ALL, "walkthrough.ipynb") is None
    handles = wait.until(lambda page: page.find_elements("class name", "noUi-handle"))
    assert len(handles) == 3
    for handle in handles:
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", handle)
        before = None, browser.execute_script(SHOWN)
        handle.send_keys("\ue014")  # the right arrow
        wait.until(lambda page, old=before: page.execute_script(SHOWN) not in old)
