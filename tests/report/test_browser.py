"""The walkthrough's sliders as a reader moves them: in JupyterLab, in a browser."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from prslib.paths import project_root

webdriver = pytest.importorskip("selenium.webdriver")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no chromium and chromium-driver (Debian's packages) here"
)
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


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """The address of a JupyterLab that shows a copy of the walkthrough."""
    shutil.copy(project_root() / "notebooks" / "walkthrough.ipynb", tmp_path)
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
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
            address = f"http://127.0.0.1:{port}/lab"
            _wait(lambda: _answers(address), "JupyterLab")
            yield address
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def browser(tmp_path):
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


def test_every_slider_redraws_the_picture(lab, browser):
    browser.get(lab)
    _wait(lambda: browser.execute_script("return window.jupyterapp !== undefined"), "the page")
    assert browser.execute_async_script(RUN_ALL, "walkthrough.ipynb") == []
    handles = _wait(lambda: browser.find_elements("css selector", ".noUi-handle"), "the sliders")
    assert len(handles) == 3
    for handle in handles:
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", handle)
        before = _shown(browser)
        handle.send_keys(webdriver.Keys.ARROW_RIGHT)
        _wait(lambda before=before: _shown(browser) not in (None, before), "a new picture")


def _shown(browser):
    """Return the address of the live picture, None while it is loading."""
    return browser.execute_script(
        "const image = document.querySelector('img.widget-image');"
        "return image && image.complete && image.naturalWidth > 0 ? image.src : null;"
    )
