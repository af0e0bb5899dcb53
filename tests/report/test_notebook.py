"""The parameters of a notebook, what they refuse, and what is saved."""

import json
import math
import subprocess

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml

from prslib.paths import params_file, project_root
from prslib.report import notebook
from prslib.report.notebook import PARAMETERS

CELL = """profile: str = "smoke"  # which
dataset: list = ["digits70tiny"]  # data sets
rho: float = 0.0  # power
seeds: list = [0, 1]  # seeds"""


GIVEN = {"profile": "smoke", "dataset": ["digits70tiny"], "rho": 0.0, "seeds": [0, 1]}


def namespace(injected="", **values):
    others = [f"\n{name}: list = None" for name in values if name in PARAMETERS.keys() - GIVEN]
    cells = ["", CELL + "".join(others)] + ([f"# Parameters\n{injected}"] if injected else [])
    return GIVEN | values | {"In": cells, "unrelated": 3}


def test_settings_hold_the_checked_values():
    settings = notebook.settings("any", namespace())
    assert settings.values == GIVEN
    assert settings.rho == 0.0
    with pytest.raises(AttributeError, match="no parameter 'unrelated' in any"):
        _ = settings.unrelated


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("seeds", "0,1,2", [0, 1, 2]),
        ("seeds", "[3, 4]", [3, 4]),
        ("seeds", 5, [5]),
        ("dataset", "digits49tiny", ["digits49tiny"]),
        ("dataset", "digits70tiny,digits49tiny", ["digits70tiny", "digits49tiny"]),
        ("rho", 1, 1.0),
        ("rho", [-0.03, 0.02], [-0.03, 0.02]),
        ("rho", "-0.03,0.02", [-0.03, 0.02]),
        ("rhos", "-1e-1,0", [-0.1, 0]),
        ("learning_rates", "1e-3,None", [0.001, None]),
        ("rhos", [0, "1e3"], [0, 1000]),  # text to YAML
        ("costly_seeds", [], []),
        ("schedules", 2, 2),
        ("shares", "0.5,1", [0.5, 1.0]),
    ],
)
def test_what_a_command_line_can_write_is_understood(name, given, value):
    settings = notebook.settings("any", namespace(f"{name} = {given!r}", **{name: given}))
    assert settings.values[name] == value


@pytest.mark.parametrize(
    ("name", "given", "error", "message"),
    [
        ("dataset", "digits", ValueError, "unknown dataset 'digits'; known datasets: cocoseq"),
        ("rho", math.nan, ValueError, "rho must be finite"),
        ("rho", [0.1, "high"], TypeError, "rho must be a number, got 'high'"),
        ("seeds", [0.5], TypeError, "seeds must be a whole number, got 0.5"),
        ("seeds", [], ValueError, "seeds must hold at least one value"),
        ("shares", [0.5, 0], ValueError, "shares must be above 0, got 0"),
        ("shares", ["half"], TypeError, "shares must be a number, got 'half'"),
        ("varied_seeds", [], ValueError, "varied_seeds must hold at least one value"),
        ("rhos", "[0, [1]]", ValueError, r"rhos must be values with .*, got '\[0, \[1\]\]'"),
        ("schedules", 0, ValueError, "schedules must be at least 1"),
        ("profile", "fast", ValueError, "known profiles: laptop, paper, quick, seeds, smoke"),
    ],
)
def test_bad_values_stop_the_notebook(name, given, error, message):
    with pytest.raises(error, match=message):
        notebook.settings("any", namespace(f"{name} = {given!r}", **{name: given}))


def test_unknown_parameters_name_the_allowed_ones():
    with pytest.raises(
        ValueError, match="unknown parameter 'roh'; parameters of any: profile, dataset, rho, seeds"
    ):
        notebook.settings("any", namespace("rho = 0.1\nroh = 0.2", rho=0.1, roh=0.2))


def test_without_a_cell_of_parameters_the_error_says_what_is_wanted():
    space = namespace()
    space["In"] = ["rho = 0.1", "import numpy"]
    with pytest.raises(ValueError, match="expected a cell of the parameters of any to have been"):
        notebook.settings("any", space)


def test_a_notebook_about_one_kind_of_data_refuses_the_other():
    single = namespace(dataset=["imbal-digits"])
    single["In"] = ['dataset: list = ["imbal-digits"]']
    assert notebook.settings("any", single, single_label=True).dataset == ["imbal-digits"]
    with pytest.raises(ValueError, match="several labels an image, got the data"):
        notebook.settings("any", single, single_label=False)


def test_a_notebook_run_again_with_other_names_around_is_fine():
    space = namespace()
    space["In"] += ["settings = 1\nscores = 2", "%matplotlib inline", "for x in range(3: broken"]
    assert notebook.settings("any", space).seeds == [0, 1]


def test_only_the_profiles_own_parameters_write_into_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    named = yaml.safe_load(params_file("smoke", "rho_sweep").read_text())
    exact = notebook.Settings(
        "rho_sweep", {name: PARAMETERS[name](name, value) for name, value in named.items()}
    )
    assert exact.folder == tmp_path / "smoke"
    other = notebook.Settings("rho_sweep", exact.values | {"seeds": [7]})
    assert other.folder == tmp_path / "custom"
    other.save(None, pd.DataFrame({"value": [1 / 3]}), "numbers")
    assert (other.folder / "rho_sweep_numbers.csv").read_text() == "value\n0.333333\n"
    assert "| `seeds` | [7] |" in other._repr_markdown_()


def test_a_profile_brings_its_values_where_the_notebooks_own_were_left():
    quick, smoke = (notebook.given(name, "rho_sweep") for name in ("quick", "smoke"))
    space = {"In": ["seeds: list = 0\nrhos: list = 0\nprofile: str = ''"], **quick}
    settings = notebook.settings("rho_sweep", space | {"profile": "smoke", "seeds": [7]})
    assert (settings.rhos, settings.seeds) == (smoke["rhos"], [7])
    space["In"].append("# Parameters\nrhos = 0")  # what papermill was given stays
    assert notebook.settings("rho_sweep", space | {"profile": "smoke"}).rhos == quick["rhos"]
    with pytest.raises(ValueError, match="'laptop' has no parameters for inter_task: expected par"):
        notebook.settings("inter_task", space | {"profile": "laptop"})


def test_what_is_shown_is_the_file_as_large_as_the_figure(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr("IPython.display.display", shown.append)
    custom = notebook.Settings("rho_sweep", {"profile": "smoke", "seeds": [7]})
    figure, _ = plt.subplots(figsize=(2, 1), dpi=100)
    figure.suptitle("PRS minus CRS")
    custom.save(figure, pd.DataFrame({"value": [1.0]}), "picture")
    assert not plt.fignum_exists(figure.number)  # or it would be drawn once more
    (image,) = shown
    assert image.data == (custom.folder / "rho_sweep_picture.png").read_bytes()
    assert (image.width, image.alt) == (200, "PRS minus CRS")


def test_papermill_stops_in_the_second_cell(python, tmp_path):
    out = tmp_path / "out.ipynb"
    given = ["notebooks/main_results.ipynb", str(out), "-p", "roh", "0.1"]
    done = python("-m", "papermill", *given, PYTHONWARNINGS="default")
    assert done.returncode != 0
    assert "unknown parameter 'roh'; parameters of main_results: profile, dataset," in done.stderr
    cells = json.loads(out.read_text())["cells"]
    ran = [cell for cell in cells if cell["cell_type"] == "code" and cell["execution_count"]]
    sources = ["".join(cell["source"]) for cell in ran]
    assert "notebook.settings" in sources[-1]
    assert not any("run_all" in source for source in sources)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory-size: 3\nsedes: [1]", "parameter 'memory-size', 'sedes'; parameters of main_resu"),
        ("dataset: mnist", "unknown dataset 'mnist'; known datasets: "),
        ("memory_size: 99999", "choose a smaller memory"),
    ],
)
def test_bad_parameters_are_refused_before_training(tmp_path, monkeypatch, text, message):
    file = tmp_path / "main_results.yaml"
    file.write_text(f"profile: smoke\ndevice: cpu\n{text}")
    monkeypatch.setattr(notebook, "params_file", lambda profile, name: file)
    with pytest.raises((ValueError, TypeError), match=message):
        notebook.wanted("main_results", "smoke")


def test_make_help_lists_the_targets(python):
    done = subprocess.run(
        ["make", "help"], cwd=project_root(), capture_output=True, text=True, check=True
    )
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("make ")]
    assert {"figures", "test", "lab", "help"} <= set(listed)
    assert "figures" in python("-m", "prslib", "--help").stdout


def test_a_picture_says_what_it_shows():
    figure, (left, right) = plt.subplots(1, 2)
    figure.suptitle("cocoseq-mini")
    left.plot([1, 2], label="PRS")
    left.set(title="majority", xlabel=r"power $\rho$", ylabel="mAP (%)")
    right.set_axis_off()
    said = "cocoseq-mini; majority: mAP (%) over power rho. Marks: PRS"
    assert notebook.in_words(figure) == said
    plt.close(figure)
