"""The notebooks as files, and executed under the smoke profile."""

import os
import re
import shutil
import subprocess
import sys

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from registered import call_in_turn

from prslib.cli import main
from prslib.paths import DEFAULT, known_notebooks, project_root
from prslib.report import build, notebook
from prslib.report.kernels import ForkManager, prepare
from prslib.report.native import Manager

ROOT = project_root()
NAMES = known_notebooks(DEFAULT)


def cells_of(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells


def code_of(name):
    return [cell for cell in cells_of(name) if cell.cell_type == "code"]


WITH_CONTROLS = [
    name for name in NAMES if any("**controls" in cell.source for cell in code_of(name))
]


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_are_the_same_without_outputs(name):
    def contents(cells):
        return [(c.cell_type, c.source, dict(c.metadata)) for c in cells]

    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    assert contents(script.cells) == contents(cells_of(name)), "run `make lint`"
    for cell in code_of(name):
        assert not (cell.outputs or cell.execution_count), "run `make lint`"


@pytest.mark.parametrize("profile", ["seeds", "laptop", "paper"])
def test_a_profile_for_conclusions_sets_its_seeds(profile):
    """The default of a notebook is that of `quick`, which has too few."""
    files = [ROOT / "params" / profile / f"{name}.yaml" for name in NAMES]
    for file in [file for file in files if file.is_file()]:
        declared = "\nseeds: " in code_of(file.stem)[0].source
        assert declared == ("\nseeds: " in file.read_text()), file


# as a reader moves each slider, and takes another row of each menu
MOVE = """
for control in globals().get("controls", {}).values():
    if hasattr(control, "options"):
        control.index = len(control.options) - 1
    else:
        control.value = control.min
"""


@pytest.fixture(scope="module")
def smoke(own_folders, tmp_path_factory):
    """The folder of the smoke profile's runs, executed notebooks and figures.

    At the end of each notebook a reader moves its sliders.
    """
    moved = tmp_path_factory.mktemp("notebooks")
    for name in NAMES:
        content = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        content.cells.append(new_code_cell(MOVE, metadata={"tags": [build.COMPUTE]}))
        nbformat.write(content, moved / f"{name}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "notebook_file", lambda name: moved / f"{name}.ipynb")
        patch.setattr("prslib.processes.Parallel", call_in_turn)
        patch.delenv("PYTEST_CURRENT_TEST")  # with it a kernel's stderr has no file
        assert build.execute("smoke", NAMES) == {}
        yield own_folders


def executed(name):
    return nbformat.read(build.executed_file("smoke", name), as_version=4).cells


def outputs_of(cells):
    return [output for cell in cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("smoke")
def test_notebooks_run_under_smoke_and_train_nothing_themselves(name):
    cells = executed(name)
    outputs = outputs_of(cells)
    trains = [o for o in outputs if re.search(r"training \d", o.get("text", ""))]
    assert bool(trains) == (name == "your_stream")
    assert any("image/png" in o.get("data", {}) for o in outputs)
    for output in outputs:
        output.get("data", {}).pop("image/png", None)  # any letters may occur there
    assert "/tmp" not in str(cells)


@pytest.mark.parametrize("name", WITH_CONTROLS)
@pytest.mark.usefixtures("smoke")
def test_a_slider_or_menu_draws_a_picture_anew(name):
    about = [
        o.metadata
        for o in outputs_of(executed(name))
        if "image/png" in o.get("data", {})
    ]
    assert any("file" not in each["image/png"] for each in about)


def test_every_picture_has_its_numbers(smoke):
    folder = smoke / "figures" / "smoke"
    pictures = {file.stem for file in folder.glob("*.png")}
    assert pictures
    assert pictures <= {file.stem for file in folder.glob("*.csv")}


def test_a_kernel_of_its_own_in_another_folder_gives_the_same_and_trains_nothing(
    smoke, tmp_path, monkeypatch
):
    """As JupyterLab starts one, whatever a user has set in matplotlib and IPython."""
    runs = smoke / "cache" / "runs"
    before = {file: file.stat().st_mtime_ns for file in runs.iterdir()}
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: yellow\n")
    startup = tmp_path / "user" / "profile_default" / "startup" / "own.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("import pandas\npandas.DataFrame.to_csv = None\n")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "user"))
    monkeypatch.setattr(build, "FORKS", False)
    monkeypatch.setattr(build, "project_root", lambda: ROOT / "notebooks")
    out = tmp_path / "out"
    build.run_notebook("smoke", "gradient_variance", tmp_path / "out.ipynb", out)
    assert {file: file.stat().st_mtime_ns for file in runs.iterdir()} == before
    for file in out.iterdir():
        drawn = smoke / "figures" / "smoke" / file.name
        assert file.read_bytes() == drawn.read_bytes()
    assert list(out.glob("*.png"))


def test_what_is_missing_empty_or_made_of_something_else_is_drawn_again(smoke, capsys):
    assert main(["figures", "--profile", "smoke"]) == 0
    assert "nothing to draw" in capsys.readouterr().out

    def stale():
        return [name for name in NAMES if build.is_stale("smoke", name)]

    picture = smoke / "figures" / "smoke" / "rho_sweep_cocoseq-tiny.png"
    content = picture.read_bytes()
    picture.write_bytes(b"")
    assert stale() == ["rho_sweep"]
    picture.unlink()
    assert stale() == ["rho_sweep"]
    picture.write_bytes(content)
    assert stale() == []
    run = next((smoke / "cache" / "runs").iterdir())
    aside = run.rename(smoke / run.name)
    assert stale() == []
    aside.rename(run)


def test_pictures_are_drawn_again_from_the_tables_alone(smoke, tmp_path, monkeypatch):
    """Where no run is stored, and none is trained."""
    figures = smoke / "figures" / "smoke"
    before = {file: file.read_bytes() for file in figures.iterdir()}
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    assert build.execute("smoke", ["rho_sweep"], redraw=True) == {}
    assert {file: file.read_bytes() for file in figures.iterdir()} == before
    assert not (tmp_path / "runs").exists()


def test_one_notebook_that_stops_leaves_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setattr(build, "list_runs", build.list_runs.__wrapped__)
    good = ROOT / "params" / "smoke" / "datasets.yaml"
    shutil.copy(good, tmp_path)
    broken = {"rho_sweep": "rhos: [0, '.nan']", "single_label": "a: b: c"}
    broken["walkthrough"] = "rho: high"  # not seen before a cell runs
    for name, text in broken.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    for module in (build, notebook):
        monkeypatch.setattr(
            module, "params_file", lambda profile, name: tmp_path / f"{name}.yaml"
        )
    errors = build.execute("smoke", ["datasets", *broken])
    assert sorted(errors) == sorted(broken)
    assert errors["rho_sweep"].startswith("TypeError: rho must be a num")
    assert errors["walkthrough"].startswith("TypeError: rho must be a num")
    assert "single_label.yaml" in errors["single_label"]
    assert "\n" not in "".join(errors.values())
    assert build.executed_file("smoke", "datasets").is_file()
    assert not build.is_stale("smoke", "datasets")
    (tmp_path / "datasets.yaml").write_text(good.read_text() + "seed: 1\n")
    assert build.is_stale("smoke", "datasets")


# kernels that are forks of one process

SPOILS = "import os, sys, matplotlib\nmatplotlib.rcParams['font.size'] = 99\nsys.x = 1"
TELLS = "import os, sys, matplotlib, torch\nprint(matplotlib.rcParams['font.size'], "
TELLS += "hasattr(sys, 'x'), os.environ['TOLD'], sys.executable, os.getcwd())"


def run_cells(*sources):
    """Return what the last cell prints."""
    prepare()
    cells = [new_code_cell(source) for source in sources]
    options = {"kernel_manager_class": ForkManager, "shutdown_kernel": "immediate"}
    notebook = NotebookClient(new_notebook(cells=cells), **options).execute()
    return notebook.cells[-1].outputs[0].text


def test_each_kernel_has_a_namespace_and_settings_of_its_own(monkeypatch):
    monkeypatch.setenv("TOLD", "later")
    tail = f"later {sys.executable} {os.getcwd()}\n"
    assert run_cells(SPOILS, TELLS) == f"99.0 True {tail}"
    assert run_cells(TELLS) == f"10.0 False {tail}"


def test_a_kernel_that_ends_is_told():
    with pytest.raises(RuntimeError, match="Kernel died"):
        run_cells("import os\nos._exit(1)", "1")


KILLS = "import multiprocessing, os; os.kill(multiprocessing.parent_process().pid, 9)"
DRAWS = f"""
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from prslib.report.kernels import ForkManager

notebook = new_notebook(cells=[new_code_cell({KILLS!r})])
NotebookClient(notebook, kernel_manager_class=ForkManager).execute()
"""


def test_a_kernel_has_files_for_ports_and_ends_with_a_drawing_that_is_killed(tmp_path):
    command = [sys.executable, "-c", DRAWS]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    # what waits for the end of the output waits for all that can write it
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60}
    done = subprocess.run(command, cwd=ROOT, env=environment, **options)
    assert done.returncode == -9
    assert ForkManager().transport == "ipc"
    assert not list(tmp_path.glob("prslib-*"))


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
