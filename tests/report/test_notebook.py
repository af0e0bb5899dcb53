import math

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml

from prslib.paths import params_file
from prslib.report import notebook
from prslib.report.notebook import PARAMETERS

CELL = """profile: str = "smoke"  # which
dataset: list = ["digits70tiny"]  # data sets
rho: float = 0.0  # power
seeds: list = [0, 1]  # seeds"""


def namespace(injected="", **values):
    given = {"profile": "smoke", "dataset": ["digits70tiny"], "rho": 0.0, "seeds": [0, 1]}
    others = [
        f"\n{name}: list = None  # other" for name in values if name in PARAMETERS.keys() - given
    ]
    given |= values
    cells = ["", CELL + "".join(others)] + ([f"# Parameters\n{injected}"] if injected else [])
    return given | {"In": cells, "unrelated": 3}


def test_settings_hold_the_checked_values():
    settings = notebook.settings("any", namespace())
    assert settings.values == {
        "profile": "smoke",
        "dataset": ["digits70tiny"],
        "rho": 0.0,
        "seeds": [0, 1],
    }
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
        ("rho", "high", TypeError, "rho must be a number, got 'high'"),
        ("seeds", [0.5], TypeError, "seeds must be a whole number, got 0.5"),
        ("seeds", [], ValueError, "seeds must hold at least one value"),
        ("shares", [0.5, 0], ValueError, "shares must be above 0, got 0"),
        ("shares", ["half"], TypeError, "shares must be a number, got 'half'"),
        ("varied_seeds", [], ValueError, "varied_seeds must hold at least one value"),
        ("schedules", 0, ValueError, "schedules must be at least 1"),
        ("profile", "fast", ValueError, "known profiles: paper, quick, seeds, smoke"),
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


def test_numbers_that_yaml_takes_for_text_are_numbers():
    assert PARAMETERS["learning_rates"]("learning_rates", "1e-3,None") == [0.001, None]
    assert PARAMETERS["ewc_lambdas"]("ewc_lambdas", [0, "1e3"]) == [0, 1000]
    assert PARAMETERS["rhos"]("rhos", "-1e-1,0") == [-0.1, 0]


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


def test_what_is_shown_is_the_file_as_large_as_the_figure(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr("IPython.display.display", shown.append)
    custom = notebook.Settings("rho_sweep", {"profile": "smoke", "seeds": [7]})
    figure, _ = plt.subplots(figsize=(2, 1), dpi=100)
    custom.save(figure, pd.DataFrame({"value": [1.0]}), "picture")
    assert not plt.fignum_exists(figure.number)  # or it would be drawn once more
    (image,) = shown
    assert image.data == (custom.folder / "rho_sweep_picture.png").read_bytes()
    assert image.width == 200


def test_one_value_stays_one_and_a_list_a_list():
    assert PARAMETERS["rho"]("rho", 0.1) == 0.1
    assert PARAMETERS["rho"]("rho", [-0.03, 0.02]) == [-0.03, 0.02]
    assert PARAMETERS["rho"]("rho", "-0.03,0.02") == [-0.03, 0.02]
    with pytest.raises(TypeError, match="rho must be a number"):
        PARAMETERS["rho"]("rho", [0.1, "high"])
