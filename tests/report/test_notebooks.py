"""The notebooks as files, and executed under the smoke profile."""

import os
import re
from dataclasses import asdict
from importlib import import_module

import jupytext
import matplotlib as mpl
import nbformat
import pytest
import yaml
from in_process import InProcess
from papermill.engines import papermill_engines

from prslib.paths import project_root
from prslib.report import build

ROOT = project_root()
NAMES = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
PROFILE_FILES = sorted((ROOT / "params").glob("*/*.yaml"))


def cells_of(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells


def code_of(name):
    return [cell for cell in cells_of(name) if cell.cell_type == "code"]


def settings_of(name):
    return import_module(f"prslib.report.{name}").Settings


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_in_sync_without_outputs_and_read_as_articles(name):
    def contents(cells):
        return [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in cells]

    cells = cells_of(name)
    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    assert contents(script.cells) == contents(cells), "run `make lint`"
    assert cells[0].source.startswith("# ")
    code = code_of(name)
    assert len(code) <= 12
    for cell in code:
        assert not (cell.outputs or cell.execution_count)
        lines = cell.source.splitlines()
        assert len(lines) <= 12, cell.source
        assert not any(line.lstrip().startswith(("def ", "class ")) for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_typed_explained_and_those_of_the_topic(name):
    (cell,) = [c for c in code_of(name) if "parameters" in c.metadata.get("tags", [])]
    for line in cell.source.splitlines():
        declaration, comment = line.split("  # ")
        kind = declaration.split(" = ")[0].split(": ")[1]
        assert kind in {"str", "float", "int", "list"}
        assert "=" not in comment
    values = {}
    exec(cell.source, {}, values)
    values = {name: value for name, value in values.items() if name[0] != "_"}
    settings = settings_of(name)
    assert values.keys() == asdict(settings()).keys()
    assert settings(**values) == settings()


@pytest.mark.parametrize(
    "file", PROFILE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_profiles_list_what_differs_from_the_notebook(file):
    values = yaml.safe_load(file.read_text())
    assert values.pop("profile") == file.parent.name
    settings = settings_of(file.stem)
    defaults, profile = asdict(settings()), asdict(settings.of(file.parent.name))
    assert all(profile[name] != defaults[name] for name in values)


@pytest.fixture(scope="module")
def smoke(own_folders):
    """The folder of the smoke profile's runs, executed notebooks and figures."""
    with pytest.MonkeyPatch.context() as patch, mpl.rc_context():
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")  # to train in this process
        patch.setattr(build, "DRAWN_AT_ONCE", 1)
        patch.setitem(papermill_engines._engines, None, InProcess)
        assert build.execute("smoke", NAMES) == {}
    return own_folders


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run_under_smoke_and_train_nothing_themselves(smoke, name):
    file = smoke / "cache" / "executed" / "smoke" / f"{name}.ipynb"
    executed = nbformat.read(file, as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    assert not [o for o in outputs if "training:" in o.get("text", "")]
    assert any("image/png" in o.get("data", {}) for o in outputs)


def test_every_picture_has_its_numbers(smoke):
    folder = smoke / "figures" / "smoke"
    pictures = {file.stem for file in folder.glob("*.png")}
    assert pictures
    assert pictures <= {file.stem for file in folder.glob("*.csv")}
    assert not (smoke / "figures" / "custom").exists()


def test_an_executed_notebook_becomes_an_article_with_its_pictures(smoke, program):
    file = program("articles").write("smoke", "datasets")
    text = file.read_text()
    assert "<details><summary>Parameters</summary>\n\n| parameter | value |" in text
    links = re.findall(r"!\[.*\]\((.*\.png)\)", text)
    assert links and all((file.parent / link).is_file() for link in links)


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


def test_only_what_changed_is_executed_again(smoke, python):
    assert not any(build.stale("smoke", name) for name in NAMES)
    done = python("-m", "prslib", "figures", "--profile", "smoke")
    assert "nothing to draw" in done.stdout
    os.utime(build.executed_file("smoke", "rho_sweep"), (0, 0))
    assert [name for name in NAMES if build.stale("smoke", name)] == ["rho_sweep"]
