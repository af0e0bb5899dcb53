"""The notebooks as files, and executed under the smoke profile."""

import json
import os
import subprocess
import sys

import jupytext
import nbformat
import pytest
import yaml

from prslib.cli import main
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.paths import project_root
from prslib.report import build as executed
from prslib.report import build as execution
from prslib.report import notebook
from prslib.report.notebook import PARAMETERS, PROFILES
from prslib.training.config import RunConfig

ROOT = project_root()
NAMES = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
PROFILE_FILES = sorted((ROOT / "params").glob("*/*.yaml"))


def read(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def code_cells(name):
    return [cell for cell in read(name).cells if cell.cell_type == "code"]


def parameters_of(name):
    (cell,) = [c for c in code_cells(name) if "parameters" in c.metadata.get("tags", [])]
    return cell.source.splitlines()


def imports_of(name):
    lines = [line for cell in code_cells(name) for line in cell.source.splitlines()]
    return [line for line in lines if line.startswith(("import ", "from "))]


def test_there_are_notebooks_and_each_has_its_pair():
    assert NAMES
    assert sorted(file.stem for file in (ROOT / "notebooks").glob("*.py")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_in_sync_and_without_outputs(name):
    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    ours = [(cell.cell_type, cell.source, cell.metadata.get("tags", [])) for cell in script.cells]
    theirs = [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in read(name).cells]
    assert ours == theirs, "run `make lint`"
    for cell in code_cells(name):
        assert not cell.outputs
        assert cell.execution_count is None


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_read_as_articles(name):
    cells = code_cells(name)
    assert len(cells) <= 12
    for cell in cells:
        lines = cell.source.splitlines()
        assert len(lines) <= 12, cell.source
        assert not any(line.lstrip().startswith(("def ", "class ")) for line in lines)
    assert read(name).cells[0].source.startswith("# ")


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_known_typed_and_explained(name):
    for line in parameters_of(name):
        declaration, comment = line.split("  # ")
        parameter, kind = declaration.split(" = ")[0].split(": ")
        assert parameter in PARAMETERS
        assert kind in {"str", "float", "int", "list"}
        assert "=" not in comment


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_the_quick_profile(name):
    defaults = {}
    exec("\n".join(parameters_of(name)), defaults)
    quick = yaml.safe_load((ROOT / "params" / "quick" / f"{name}.yaml").read_text())
    assert {parameter: defaults[parameter] for parameter in quick} == quick
    assert len(quick) == len(parameters_of(name))


@pytest.mark.parametrize("file", PROFILE_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_profiles_name_known_parameters(file):
    assert file.parent.name in PROFILES
    given = yaml.safe_load(file.read_text())
    known = [line.split(":")[0] for line in parameters_of(file.stem)]
    assert list(given) == known
    for name, value in given.items():
        PARAMETERS[name](name, value)
    assert given["profile"] == file.parent.name


def execute(arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def smoke(own_folders):
    """The smoke profile's figures, from one call of the command line."""
    done = execute(["-m", "prslib", "figures", "--profile", "smoke"])
    assert done.returncode == 0, done.stderr
    return own_folders


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run_under_the_smoke_profile(smoke, name):
    executed = nbformat.read(smoke / "cache" / "executed" / "smoke" / f"{name}.ipynb", as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    assert not [o for o in outputs if o.output_type == "error"]
    assert any("image/png" in o.get("data", {}) for o in outputs)


def test_every_picture_has_its_numbers(smoke):
    folder = smoke / "figures" / "smoke"
    pictures = {file.stem for file in folder.glob("*.png")}
    assert pictures
    assert pictures <= {file.stem for file in folder.glob("*.csv")}
    assert not (smoke / "figures" / "custom").exists()


def test_a_second_time_nothing_is_trained(smoke):
    runs = {file: file.stat().st_mtime_ns for file in (smoke / "cache" / "runs").iterdir()}
    done = execute(["-m", "prslib", "figures", "--profile", "smoke", "main_results"])
    assert done.returncode == 0, done.stderr
    assert "training" not in done.stderr
    assert runs == {file: file.stat().st_mtime_ns for file in (smoke / "cache" / "runs").iterdir()}


def test_jupyterlab_gives_the_same_numbers(smoke, tmp_path):
    """JupyterLab starts a notebook in notebooks/, make in the checkout's root."""
    arguments = [
        "-m",
        "papermill",
        "notebooks/memory_distribution.ipynb",
        str(tmp_path / "o.ipynb"),
    ]
    arguments += ["-f", "params/smoke/memory_distribution.yaml", "--cwd", str(ROOT / "notebooks")]
    done = execute(arguments, PRSLIB_FIGURES=str(tmp_path))
    assert done.returncode == 0, done.stderr
    for file in (tmp_path / "smoke").iterdir():
        assert file.read_bytes() == (smoke / "figures" / "smoke" / file.name).read_bytes()
    assert list((tmp_path / "smoke").glob("*.png"))


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (["roh", "0.1"], "unknown parameter 'roh'; parameters of main_results: profile, dataset,"),
        (["rho", "high"], "rho must be a number"),
        (["dataset", "mnist"], "unknown dataset 'mnist'; known datasets: "),
        (["memory_size", "99999"], "choose a smaller memory"),
    ],
)
def test_papermill_stops_in_the_second_cell(tmp_path, parameter, message):
    out = tmp_path / "out.ipynb"
    arguments = ["-m", "papermill", "notebooks/main_results.ipynb", str(out), "-p", *parameter]
    done = execute(arguments, PYTHONWARNINGS="default")
    assert done.returncode != 0
    assert message in done.stderr
    cells = json.loads(out.read_text())["cells"]
    ran = [cell for cell in cells if cell["cell_type"] == "code" and cell["execution_count"]]
    sources = ["".join(cell["source"]) for cell in ran]
    assert "notebook.settings" in sources[-1]
    assert not any("run_all" in source for source in sources)


def test_commands_say_what_is_known():
    done = execute(["-m", "prslib", "figures", "--profile", "smoke", "main_result"])
    assert done.returncode == 1
    assert ", main_results, memory_distribution, " in done.stderr
    assert "figures" in execute(["-m", "prslib", "--help"]).stdout


def test_make_help_lists_the_targets():
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("make ")]
    assert {"figures", "test", "lab", "help"} <= set(listed)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_say_ahead_what_they_train(smoke, name):
    assert all(isinstance(config, RunConfig) for config in notebook.wanted(name, "smoke"))
    executed = nbformat.read(smoke / "cache" / "executed" / "smoke" / f"{name}.ipynb", as_version=4)
    outputs = [o for cell in executed.cells for o in cell.get("outputs", [])]
    assert not [o for o in outputs if "training:" in o.get("text", "")]


def test_only_what_changed_is_executed_again(smoke, monkeypatch, tmp_path):
    monkeypatch.setattr(executed, "cache_dir", lambda: smoke / "cache")
    assert not any(executed.stale("smoke", name) for name in NAMES)
    done = execute(["-X", "importtime", "-m", "prslib", "figures", "--profile", "smoke"])
    assert done.returncode == 0
    assert "nothing to draw" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "prslib.report.build" in imported
    assert not {"torch", "papermill"} & imported  # it takes a moment
    file = executed.executed_file("smoke", "rho_sweep")
    os.utime(file, (0, 0))
    assert [name for name in NAMES if executed.stale("smoke", name)] == ["rho_sweep"]
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    assert all(executed.stale("smoke", name) for name in NAMES)


@pytest.fixture
def params(tmp_path, monkeypatch):
    """Write parameters of notebooks, under whatever profile."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text)

    monkeypatch.setattr(notebook, "params_file", lambda profile, name: tmp_path / f"{name}.yaml")
    return write


GOOD = (ROOT / "params" / "smoke" / "datasets.yaml").read_text()


def test_one_notebook_that_stops_leaves_the_others(params):
    params(
        datasets=GOOD,
        rho_sweep="{profile: smoke, rhos: ['.nan']}",
        single_label="a: b: c",
        tail_forgetting="",
    )
    broken = ["rho_sweep", "single_label", "tail_forgetting"]
    errors = execution.execute("smoke", ["datasets", *broken])
    assert sorted(errors) == broken
    assert "rhos must be a number" in errors["rho_sweep"]
    assert "as far as it came: " in errors["rho_sweep"]
    assert "single_label.yaml cannot be read as YAML: " in errors["single_label"]
    assert "expected parameters and their values in " in errors["tail_forgetting"]
    assert executed.executed_file("smoke", "datasets").is_file()


@pytest.mark.parametrize("error", [ValueError, OSError, ConnectionError, RuntimeError])
def test_a_sweep_that_stops_is_no_notebook(params, monkeypatch, capsys, error):
    def stop(_configs, device):
        raise error(f"no {device}")

    def draw(_profile, name):
        if name == "rho_sweep":
            raise RuntimeError("Kernel died")
        return 0.0

    params(datasets=GOOD, rho_sweep=(ROOT / "params" / "smoke" / "rho_sweep.yaml").read_text())
    monkeypatch.setattr(execution, "run_all", stop)
    monkeypatch.setattr(execution, "_draw", draw)
    assert main(["figures", "--profile", "smoke", "datasets", "rho_sweep"]) == 1
    said = capsys.readouterr().err
    assert f"training on cpu stopped: {error.__name__}: no cpu" in said
    assert "rho_sweep stopped: RuntimeError: Kernel died" in said
    assert said.endswith("1 notebooks stopped: rho_sweep\n")


def test_a_misspelt_parameter_is_refused_before_training(params):
    params(datasets=f"{GOOD}\nmemory-size: 3\nsedes: [1]")
    said = "unknown parameter 'memory-size', 'sedes'; parameters of datasets: profile, "
    with pytest.raises(ValueError, match=said):
        notebook.wanted("datasets", "smoke")


def test_an_unknown_profile_names_the_known_ones(capsys):
    for profile in ("nope", "paper/", ""):
        for command in ("figures", "plan", "report"):
            assert main([command, "--profile", profile]) == 1
            said = f"unknown profile {profile!r}; known profiles: paper, quick, seeds, smoke\n"
            assert capsys.readouterr().err == said


def test_drawing_what_is_stored_does_not_load_torch(tmp_path):
    """Torch takes a second or more to import, in each of the notebooks."""
    imports = sorted({line for name in NAMES for line in imports_of(name)})
    store = Store(tmp_path)
    run_all([RunConfig(dataset="digits70tiny", method="Finetune")], store)
    code = [
        *imports,
        "import sys",
        "from prslib import RunConfig, Store, run_all",
        'stored = RunConfig(dataset="digits70tiny", method="Finetune")',
        f"run_all([stored], Store({str(tmp_path)!r}))",
        'assert "torch" not in sys.modules',
    ]
    subprocess.run([sys.executable, "-c", "\n".join(code)], check=True)
