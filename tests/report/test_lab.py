"""A notebook in JupyterLab as a reader uses it, in a browser where there is one."""

import os
import shutil
import socket
import subprocess
import sys

import pytest

from prslib.paths import project_root

ROOT = project_root()
COPIED = ("prslib", "notebooks", "params", "docs/lab")
FILES = ("pyproject.toml", ".gitignore")
WAIT = 300  # seconds at most for what a loaded machine does in ten

OPENED = "return !!document.querySelector('.jp-MarkdownViewer a');"
FOLLOW = """
const links = [...document.querySelectorAll('.jp-MarkdownViewer a')];
links.find(a => a.innerText === arguments[0]).click();
"""
PANEL = """
const panels = window.jupyterapp ? [...jupyterapp.shell.widgets('main')] : [];
const panel = panels.find(p => p.context && p.context.path.endsWith('.ipynb'));
"""
IDLE = f"""{PANEL}
const kernel = panel && panel.context.isReady && panel.sessionContext.session?.kernel;
return Boolean(kernel && kernel.status === 'idle' && panel.content.widgets.length);
"""
CELLS = f"""{PANEL}
return panel.content.widgets.filter(c => c.model.type === 'code').map(c => ({{
  source: c.model.sharedModel.getSource(),
  outputs: c.model.outputs.toJSON(),
}}));
"""
WRITE = f"""{PANEL}
const cell = panel.content.widgets.filter(c => c.model.type === 'code')[0];
cell.model.sharedModel.setSource(arguments[0]);
"""
RUN = f"""{PANEL}
jupyterapp.shell.activateById(panel.id);
jupyterapp.commands.execute('notebook:run-all-cells');
"""
SCROLL = f"""{PANEL}
const cells = panel.content.widgets;
panel.content.scrollToItem(
  cells.findIndex(c => c.model.sharedModel.getSource().includes('controls = {{')));
"""
SLIDER = "return !!document.querySelector('.jp-NotebookPanel .widget-slider');"


@pytest.fixture
def checkout(tmp_path):
    """A copy of what JupyterLab and the notebooks read, as JupyterLab saves by itself."""
    copy = tmp_path / "checkout"
    for folder in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for file in FILES:
        shutil.copy(ROOT / file, copy)
    (copy / "data").symlink_to(ROOT / "data")
    return copy


@pytest.fixture
def lab(checkout, tmp_path):
    """The address of JupyterLab as `make lab` starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"HOME": "home", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data"}
    own |= {"JUPYTER_RUNTIME_DIR": "runtime", "PRSLIB_CACHE": "cache"}
    environment = os.environ | {name: str(tmp_path / own[name]) for name in own}
    environment["PYTHONPATH"] = str(checkout)
    command = [sys.executable, "-m", "jupyterlab", "--config=docs/lab/config.py"]
    command += [f"--port={port}", "--no-browser", "--expose-app-in-browser"]
    command += ["--IdentityProvider.token=reader", "--ServerApp.port_retries=0"]
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(
            command,
            cwd=checkout,
            env=environment,
            stdout=log,
            stderr=log,
        )
    yield f"http://127.0.0.1:{port}/?token=reader"
    server.terminate()
    server.wait()


@pytest.fixture
def wait_for(browser):
    from selenium.common.exceptions import JavascriptException, WebDriverException
    from selenium.webdriver.support.wait import WebDriverWait

    def wait(condition):
        ignored = [JavascriptException, WebDriverException]
        return WebDriverWait(browser, WAIT, 0.1, ignored).until(lambda _: condition())

    return wait


def set_parameters(source, **values):
    lines = source.splitlines()
    for name, value in values.items():
        (place,) = [n for n, line in enumerate(lines) if line.startswith(f"{name}:")]
        lines[place] = f"{lines[place].split('=')[0]}= {value!r}"
    return "\n".join(lines)


def test_a_reader_changes_parameters_and_runs(lab, browser, wait_for):
    def open_list():
        browser.get(lab)
        return wait_for(lambda: browser.execute_script(OPENED))

    def cells():
        return browser.execute_script(CELLS)

    def outputs():
        return [output for cell in cells() for output in cell["outputs"]]

    wait_for(open_list)  # the server takes a while
    question = "What is in the memory when the stream has ended?"
    browser.execute_script(FOLLOW, question)
    wait_for(lambda: browser.execute_script(IDLE))
    # whose memories follow from labels: nothing is trained
    few = {"dataset": ["cocoseq-tiny"], "method": ["CRS", "PRS"], "rho": 0.3}
    few["seeds"] = [0, 1]
    browser.execute_script(WRITE, set_parameters(cells()[0]["source"], **few))
    browser.execute_script(RUN)
    wait_for(lambda: cells()[-1]["outputs"])
    shown = outputs()
    types = {output["output_type"] for output in shown}
    assert types == {"display_data", "execute_result"}
    shown = str(shown)
    assert "| `rho` | 0.3 |" in shown
    assert "cocoseq-tiny: the memory class by class, 2 seeds" in shown
    browser.execute_script(SCROLL)
    wait_for(lambda: browser.execute_script(SLIDER))
