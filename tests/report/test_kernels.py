"""Kernels that are forks of one process."""

import os
import sys

import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from prslib.report.kernels import ForkManager, prepare
from prslib.report.native import Manager

SPOILS = "import os, sys, matplotlib\nmatplotlib.rcParams['font.size'] = 99\nsys.x = 1"
TELLS = "import os, sys, matplotlib, torch\nprint(matplotlib.rcParams['font.size'], "
TELLS += "hasattr(sys, 'x'), os.environ['TOLD'], sys.executable, os.getcwd())"


def run(*sources):
    """Return what the last cell prints."""
    prepare()
    cells = [new_code_cell(source) for source in sources]
    options = {"kernel_manager_class": ForkManager, "shutdown_kernel": "immediate"}
    notebook = NotebookClient(new_notebook(cells=cells), **options).execute()
    return notebook.cells[-1].outputs[0].text


def test_each_kernel_has_a_namespace_and_settings_of_its_own(monkeypatch):
    monkeypatch.setenv("TOLD", "later")
    tail = f"False later {sys.executable} {os.getcwd()}\n"
    assert run(TELLS) == f"10.0 {tail}"
    assert run(SPOILS, TELLS) == f"99.0 True{tail.removeprefix('False')}"
    assert run(TELLS) == f"10.0 {tail}"
    with pytest.raises(CellExecutionError, match="'matplotlib' is not defined"):
        run("print(matplotlib)")


def test_a_kernel_that_ends_is_told():
    with pytest.raises(RuntimeError, match="Kernel died"):
        run("import os\nos._exit(1)", "1")


@pytest.mark.parametrize("manager", [Manager, ForkManager])
def test_a_kernel_is_this_python_whatever_a_user_has_installed(
    tmp_path, monkeypatch, manager
):
    installed = tmp_path / "kernels" / "python3" / "kernel.json"
    installed.parent.mkdir(parents=True)
    installed.write_text('{"argv": ["false"], "display_name": "other"}')
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    assert manager().kernel_spec.argv[0] == sys.executable
