"""A notebook in JupyterLab as a reader uses it, in a browser where there is one."""

import os
import shutil
import socket
import subprocess
import sys
import time

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
  cells.findIndex(c => c.model.sharedModel.getSource().includes('make_menus(list')));
"""
MENU = "document.querySelector('.jp-NotebookPanel .widget-dropdown select')"
CHOOSE = f"""
{MENU}.selectedIndex = arguments[0];
{MENU}.dispatchEvent(new Event('change', {{bubbles: true}}));
"""
INTERRUPT = f"{PANEL} panel.sessionContext.session.kernel.interrupt();"
SAVE = f"{PANEL} panel.context.save().then(arguments[0]);"
DUPLICATE = f"""{PANEL}
const contents = jupyterapp.serviceManager.contents;
contents.copy(panel.context.path, 'notebooks').then(f => arguments[0](f.name));
"""


def git(checkout, *arguments):
    name = ("-c", "user.name=reader", "-c", "user.email=reader@example.org")
    command = ["git", "-C", str(checkout), *name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path):
    """A committed copy of what JupyterLab and the notebooks read."""
    copy = tmp_path / "checkout"
    for folder in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for file in FILES:
        shutil.copy(ROOT / file, copy)
    (copy / "data").symlink_to(ROOT / "data")
    git(copy, "init", "--quiet")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "--message", "as released")
    return copy


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


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
    end = time.monotonic() + WAIT
    while not listens(port):  # a browser may show its error page as if it were ours
        assert server.poll() is None and time.monotonic() < end
        time.sleep(0.1)
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


def test_a_reader_changes_parameters_interrupts_and_runs_again(
    lab, browser, checkout, wait_for
):
    browser.set_script_timeout(WAIT)

    def idle():
        return browser.execute_script(IDLE)

    def cells():
        return browser.execute_script(CELLS)

    def training():
        (cell,) = [cell for cell in cells() if "run_all(planned" in cell["source"]]
        return cell["outputs"]

    def is_after_training():
        return [cell["outputs"] for cell in cells()][-1]

    browser.get(lab)
    wait_for(lambda: browser.execute_script(OPENED))
    browser.execute_script(FOLLOW, "Does a partitioned memory keep the rare classes?")
    wait_for(idle)
    few = {"dataset": ["cocoseq-tiny"], "method": ["CRS", "PRS"], "rho": 0.3}
    parameters = cells()[0]["source"]
    many = set_parameters(parameters, **few, seeds=[*range(99)])
    browser.execute_script(WRITE, many)
    browser.execute_script(RUN)
    wait_for(lambda: "training" in str(training()))
    browser.execute_script(INTERRUPT)
    wait_for(lambda: training()[-1]["output_type"] == "error")
    wait_for(idle)
    bar, stopped = training()
    assert bar["name"] == "stdout"  # which is not red
    (sentence,) = stopped["traceback"]
    assert sentence.startswith("stopped: ") and "\n" not in sentence
    assert not is_after_training()

    browser.execute_script(WRITE, set_parameters(parameters, **few, seeds=[0, 1]))
    browser.execute_script(RUN)
    wait_for(is_after_training)
    outputs = [output for cell in cells() for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {
        "display_data",
        "execute_result",
        "stream",
    }
    shown = str(outputs)
    assert "| `rho` | 0.3 |" in shown and "stderr" not in shown
    assert "cocoseq-tiny, balanced test: scores by class group, 2 seeds" in shown

    browser.execute_script(SCROLL)
    wait_for(lambda: browser.execute_script(f"return Boolean({MENU})"))
    browser.execute_script(CHOOSE, 1)
    other = "cocoseq-tiny, imbalanced test: scores by class group"
    wait_for(lambda: other in str(cells()))

    browser.execute_async_script(SAVE)
    copy = browser.execute_async_script(DUPLICATE)
    assert (checkout / "notebooks" / copy).is_file()
    assert git(checkout, "status", "--short") == " M notebooks/main_results.ipynb\n"
