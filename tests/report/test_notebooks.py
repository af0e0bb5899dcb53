"""The notebooks as files, and executed under the smoke profile."""

import ast
import re

import jupytext
import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from papermill import inspect_notebook

from prslib.paths import DEFAULT, known_notebooks, project_root
from prslib.report import build
from prslib.report.notebook import (
    Settings,
    assigned_names,
    defaults_of,
    profile_values,
)

ROOT = project_root()
NAMES = known_notebooks(DEFAULT)
PROFILE_FILES = sorted((ROOT / "params").glob("*/*.yaml"))
FOLDED = {"source_hidden": True}
FOLDED_TAGS = {"runs", "functions", "answer"}


def cells_of(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells


def code_of(name):
    return [cell for cell in cells_of(name) if cell.cell_type == "code"]


def tags_of(cell):
    return cell.metadata.get("tags", [])


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_are_the_same_without_outputs(name):
    def contents(cells):
        return [(c.cell_type, c.source, dict(c.metadata)) for c in cells]

    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    assert contents(script.cells) == contents(cells_of(name)), "run `make lint`"
    for cell in code_of(name):
        assert not (cell.outputs or cell.execution_count), "run `make lint`"


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_meets_a_picture_after_forty_lines_of_code(name):
    lines = 0
    for cell in code_of(name):
        folded = cell.metadata.get("jupyter") == FOLDED
        assert folded == bool(FOLDED_TAGS & set(tags_of(cell)))
        lines += 0 if folded else len(list(filter(str.strip, cell.source.splitlines())))
        if "settings.show(" in cell.source:
            break
    assert lines <= 40


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_typed_and_explained(name):
    (cell,) = [cell for cell in code_of(name) if "parameters" in tags_of(cell)]
    read = inspect_notebook(ROOT / "notebooks" / f"{name}.ipynb")  # as papermill does
    assert list(read) == list(defaults_of(name))
    assert len(read) == len(cell.source.splitlines())
    for row in read.values():
        assert row["inferred_type_name"] != "None"
    assert defaults_of(name).items() <= vars(Settings.of("quick", name)).items()


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_assigns_a_parameter_or_a_name_that_a_cell_defines(name):
    """Running any cell twice then gives the same."""
    functions = set()
    for cell in code_of(name):
        if {"runs", "functions"} & set(tags_of(cell)):
            nodes = ast.parse(cell.source).body
            functions |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    for cell in code_of(name):
        if "parameters" in tags_of(cell) or "%timeit" in cell.source:
            continue
        tree = ast.parse(cell.source)
        top = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        names = {name for node in top for name in assigned_names(ast.unparse(node))}
        assert not names & (functions | defaults_of(name).keys())


@pytest.mark.parametrize(
    "file", PROFILE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_profiles_list_what_differs_from_the_notebook(file):
    values = yaml.safe_load(file.read_text())
    assert values.pop("profile") == file.parent.name
    defaults = defaults_of(file.stem)
    assert all(values[name] != defaults[name] for name in values)


@pytest.fixture(scope="module")
def smoke(own_folders):
    """The folder of the smoke profile's runs, executed notebooks and figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_CURRENT_TEST")  # with it a kernel's stderr has no file
        assert build.execute("smoke", NAMES) == {}
    return own_folders


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run_under_smoke_and_train_nothing_themselves(smoke, name):
    file = smoke / "cache" / "executed" / "smoke" / f"{name}.ipynb"
    executed = nbformat.read(file, as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    trains = [o for o in outputs if re.search(r"training \d", o.get("text", ""))]
    assert bool(trains) == (name == "your_stream")
    assert any("image/png" in o.get("data", {}) for o in outputs)
    assert "/tmp" not in str(executed.cells)


# as a reader moves each slider, and takes another row of each menu
MOVE = """
for control in controls.values():
    if hasattr(control, "options"):
        control.index = len(control.options) - 1
    else:
        control.value = control.min
"""
WITH_CONTROLS = [
    name for name in NAMES if any("**controls" in cell.source for cell in code_of(name))
]


@pytest.mark.parametrize("name", WITH_CONTROLS)
@pytest.mark.usefixtures("smoke")
def test_a_slider_or_menu_draws_a_picture_anew(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    (place,) = [
        number
        for number, cell in enumerate(notebook.cells)
        if "parameters" in tags_of(cell)
    ]
    values = profile_values("smoke", name).items()
    chosen = "\n".join(f"{parameter} = {value!r}" for parameter, value in values)
    notebook.cells.insert(place + 1, new_code_cell(chosen))
    notebook.cells.append(new_code_cell(MOVE))
    where = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, resources=where, kernel_name="python3").execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    pictures = [o.metadata for o in outputs if "image/png" in o.get("data", {})]
    assert any("file" not in about["image/png"] for about in pictures)


def test_every_picture_has_its_numbers(smoke):
    folder = smoke / "figures" / "smoke"
    pictures = {file.stem.removesuffix("_narrow") for file in folder.glob("*.png")}
    assert pictures
    assert pictures <= {file.stem for file in folder.glob("*.csv")}


def test_an_executed_notebook_becomes_an_article_with_its_pictures(smoke, program):
    folder = smoke / "figures" / "report"
    folder.mkdir()
    program("articles").write_article("smoke", "datasets", folder)
    text = (folder / "datasets.md").read_text()
    assert "<details><summary>Parameters</summary>\n\n| parameter | value |" in text
    links = re.findall(r"[\w./-]+\.png", text)
    assert any(link.endswith("_narrow.png") for link in links)
    assert all((folder / link).is_file() for link in links)


def test_a_kernel_of_its_own_in_another_folder_gives_the_same_and_trains_nothing(
    smoke, python, tmp_path
):
    """As JupyterLab starts one, with colours of a user in matplotlib's settings."""

    def runs():
        files = (smoke / "cache" / "runs").iterdir()
        return {file: file.stat().st_mtime_ns for file in files}

    before = runs()
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: yellow\n")
    out = tmp_path / "out"
    options = ["-f", "params/smoke/rho_sweep.yaml", "--cwd", str(ROOT / "notebooks")]
    files = ["notebooks/rho_sweep.ipynb", str(tmp_path / "out.ipynb")]
    options += ["-p", "save", str(out)]
    done = python("-m", "papermill", *files, *options, MPLCONFIGDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert runs() == before
    for file in out.iterdir():
        drawn = smoke / "figures" / "smoke" / file.name
        assert file.read_bytes() == drawn.read_bytes()
    assert list(out.glob("*.png"))


def test_what_is_missing_empty_or_made_of_something_else_is_drawn_again(smoke, python):
    done = python("-m", "prslib", "figures", "--profile", "smoke")
    assert "nothing to draw" in done.stdout

    def stale():
        return [name for name in NAMES if build.is_stale("smoke", name)]

    figures = smoke / "figures" / "smoke"
    picture = figures / "rho_sweep_cocoseq-tiny.png"
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
    """Where no run is stored, and none is trained: a test for every cell that draws."""
    figures = smoke / "figures" / "smoke"
    before = {file: file.read_bytes() for file in figures.iterdir()}
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    assert build.execute("smoke", NAMES, redraw=True) == {}
    assert {file: file.read_bytes() for file in figures.iterdir()} == before
    assert not (tmp_path / "runs").exists()
