"""The notebooks as files, and executed under the smoke profile."""

import os
from dataclasses import asdict
from importlib import import_module

import jupytext
import nbformat
import pytest
import yaml

from prslib.paths import project_root
from prslib.report import build
from prslib.report.topics import settings_of

ROOT = project_root()
NAMES = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
PROFILE_FILES = sorted((ROOT / "params").glob("*/*.yaml"))


@pytest.fixture(scope="module")
def cells():
    """The cells of every notebook."""
    return {
        name: nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells
        for name in NAMES
    }


@pytest.fixture(scope="module")
def code(cells):
    return {
        name: [cell for cell in every if cell.cell_type == "code"]
        for name, every in cells.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_in_sync_and_without_outputs(name, cells, code):
    def contents(cells):
        return [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in cells]

    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    assert contents(script.cells) == contents(cells[name]), "run `make lint`"
    assert not any(cell.outputs or cell.execution_count for cell in code[name])


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_read_as_articles(name, cells, code):
    assert len(code[name]) <= 12
    for cell in code[name]:
        lines = cell.source.splitlines()
        assert len(lines) <= 12, cell.source
        assert not any(line.lstrip().startswith(("def ", "class ")) for line in lines)
    assert cells[name][0].source.startswith("# ")


def defaults_of(name):
    return asdict(import_module(f"prslib.report.{name}").Settings())


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_typed_explained_and_those_of_the_topic(name, code):
    (cell,) = [c for c in code[name] if "parameters" in c.metadata.get("tags", [])]
    for line in cell.source.splitlines():
        declaration, comment = line.split("  # ")
        kind = declaration.split(" = ")[0].split(": ")[1]
        assert kind in {"str", "float", "int", "list"}
        assert "=" not in comment
    values = {}
    exec(cell.source, {}, values)
    values = {name: value for name, value in values.items() if name[0] != "_"}
    settings = import_module(f"prslib.report.{name}").Settings
    assert list(values) == list(defaults_of(name))
    assert settings(**values) == settings()


@pytest.mark.parametrize(
    "file", PROFILE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_profiles_list_what_differs_from_the_notebook(file):
    values = yaml.safe_load(file.read_text())
    defaults = defaults_of(file.stem)
    assert values.pop("profile") == file.parent.name
    settings = asdict(settings_of(file.parent.name, file.stem))
    assert all(settings[name] != defaults[name] for name in values)


@pytest.fixture(scope="module")
def smoke(own_folders, python):
    """The smoke profile's figures, from one call of the command line."""
    done = python("-m", "prslib", "figures", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    return own_folders


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run_under_smoke_and_train_nothing_themselves(smoke, name):
    file = smoke / "cache" / "executed" / "smoke" / f"{name}.ipynb"
    executed = nbformat.read(file, as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    assert not [o for o in outputs if o.output_type == "error"]
    assert not [o for o in outputs if "training:" in o.get("text", "")]
    assert any("image/png" in o.get("data", {}) for o in outputs)


def test_every_picture_has_its_numbers(smoke):
    folder = smoke / "figures" / "smoke"
    pictures = {file.stem for file in folder.glob("*.png")}
    assert pictures
    assert pictures <= {file.stem for file in folder.glob("*.csv")}
    assert not (smoke / "figures" / "custom").exists()


def test_jupyterlab_gives_the_same_numbers_and_trains_nothing_again(
    smoke, python, tmp_path
):
    """JupyterLab starts a notebook in notebooks/, make in the checkout's root."""

    def runs():
        files = (smoke / "cache" / "runs").iterdir()
        return {file: file.stat().st_mtime_ns for file in files}

    before = runs()
    options = ["-f", "params/smoke/rho_sweep.yaml", "--cwd", str(ROOT / "notebooks")]
    files = ["notebooks/rho_sweep.ipynb", str(tmp_path / "out.ipynb")]
    done = python("-m", "papermill", *files, *options, PRSLIB_FIGURES=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert runs() == before
    for file in (tmp_path / "smoke").iterdir():
        drawn = smoke / "figures" / "smoke" / file.name
        assert file.read_bytes() == drawn.read_bytes()
    assert list((tmp_path / "smoke").glob("*.png"))


def test_only_what_changed_is_executed_again(smoke, python, monkeypatch, tmp_path):
    assert not any(build.stale("smoke", name) for name in NAMES)
    done = python("-X", "importtime", "-m", "prslib", "figures", "--profile", "smoke")
    assert done.returncode == 0
    assert "nothing to draw" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "prslib.report.build" in imported
    assert not {"torch", "papermill", "matplotlib"} & imported  # each takes a second
    os.utime(build.executed_file("smoke", "rho_sweep"), (0, 0))
    assert [name for name in NAMES if build.stale("smoke", name)] == ["rho_sweep"]
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    assert all(build.stale("smoke", name) for name in NAMES)


def test_drawing_what_is_stored_does_not_load_torch(smoke, python, code):
    """Torch takes a second or more to import, in each of the notebooks."""
    sources = [cell.source for cells in code.values() for cell in cells]
    lines = set("\n".join(sources).splitlines())
    program = [
        *sorted(line for line in lines if line.startswith(("import ", "from "))),
        "import sys",
        "from prslib import run_all",
        "from prslib.report.topics import runs_of",
        'run_all(runs_of("smoke", "rho_sweep"))',
        'assert "torch" not in sys.modules',
    ]
    done = python("-c", "\n".join(program))
    assert done.returncode == 0, done.stderr
