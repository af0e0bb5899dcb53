"""The parameters of a notebook, what they refuse, and what is saved."""

import math
import subprocess
import sys
from itertools import product

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from cells import functions_of

from prslib.paths import notebook_file, project_root
from prslib.report import notebook
from prslib.report.asked import configs
from prslib.report.notebook import Settings, declared
from prslib.report.topics import definitions, runs_of

SWEEP = Settings.of("quick", "rho_sweep").values


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seeds", "0,1,2", [0, 1, 2]),
        ("seeds", "[3, 4]", [3, 4]),
        ("seeds", 5, [5]),
        ("dataset", "digits70tiny,digits49tiny", ["digits70tiny", "digits49tiny"]),
        ("rhos", "-1e-1,0", [-0.1, 0.0]),
        ("rhos", [0, "1e3"], [0.0, 1000.0]),  # text to YAML
        ("seeds", np.arange(2), [0, 1]),
        ("memory_size", None, None),
        ("memory_size", "None", None),
    ],
)
def test_what_a_command_line_can_write_is_understood(name, text, value):
    settings = Settings.read("rho_sweep", SWEEP | {name: text, "unrelated": 3})
    assert settings.values == SWEEP | {name: value}


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("dataset", "digits", ValueError, "unknown dataset 'digits'; known data"),
        ("dataset", "", ValueError, "expected at least one of dataset, got none"),
        ("seeds", "[]", ValueError, "expected at least one of seeds, got none"),
        ("seeds", None, ValueError, "expected at least one of seeds, got none"),
        (
            "seeds",
            "0,1,0",
            ValueError,
            r"seeds: expected each value once, got \[0, 1, 0\]",
        ),
        ("seeds", "0,,1", TypeError, "seeds must be a whole number, got ''"),
        ("seeds", "[0, [1]]", TypeError, r"seeds must be a whole number, got \[1\]"),
        ("rhos", "", ValueError, "expected at least one of rhos, got none"),
        ("rhos", math.nan, ValueError, "rhos must be finite"),
        ("rhos", [0.1, "high"], TypeError, "rhos must be a number, got 'high'"),
        ("seeds", [0.5], TypeError, "seeds must be a whole number, got 0.5"),
        ("device", 1, TypeError, "device must be text, got 1"),
        ("device", "gpu", ValueError, "unknown device 'gpu'; known devices: auto, cpu"),
        ("profile", "fast", ValueError, "known profiles: laptop, paper, quick, seeds"),
    ],
)
def test_bad_values_stop_the_notebook_before_it_trains(name, value, error, message):
    with pytest.raises(error, match=message):
        Settings.read("rho_sweep", SWEEP | {name: value})


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("main_results", {"metrics": ""}, "expected at least one of metrics"),
        ("main_results", {"own_threshold": "prs"}, "unknown method 'prs'"),
        ("main_results", {"own_threshold": ""}, ""),
        ("when_it_pays", {"parts": "reuters"}, "unknown dataset 'reuters'"),
        ("when_it_pays", {"others": []}, ""),
        (
            "when_it_pays",
            {"method": "PRS,CRS"},
            "unknown method beside CRS 'CRS'; known meth",
        ),
        ("architectures", {"costly_models": "resnet"}, "unknown model 'resnet'"),
        ("architectures", {"epochs": []}, "expected at least one of epochs"),
        ("memory_or_loss", {"balanced": "hinge"}, "unknown loss 'hinge'"),
        ("gradient_variance", {"points": "0,8"}, "points must be at least 1, got 0"),
        ("tail_forgetting", {"memory_share": -1}, "memory_size must be at least 1"),
        (
            "main_results",
            {"method": "PRS,OCDM"},
            "expected method with CRS and PRS, got",
        ),
        ("memory_or_loss", {"method": "PRS"}, "method: expected two or more, got"),
        ("imbalanced_test", {"method": "CRS,PRS"}, "unknown method beside PRS 'PRS'"),
        (
            "architectures",
            {"method": "CRS,PRS,Multitask"},
            "known methods beside Multitask: C",
        ),
        ("feature_tsne", {"neighbours": 0}, "neighbours must be at least 1"),
    ],
)
def test_bad_values_are_refused_when_runs_are_listed(name, values, message):
    if not message:
        runs_of_values(name, values)
        return
    with pytest.raises(ValueError, match=message):
        runs_of_values(name, values)


def runs_of_values(name, values):
    return functions_of(name).runs(Settings.of("smoke", name, **values))


@pytest.mark.parametrize(
    ("name", "parameter", "value", "message"),
    [
        ("ledger", "level", 1.5, "level must be between 0 and 1, got 1.5"),
        ("ledger", "missing", "no", "known values of missing: leave, train"),
        ("single_label", "spread", 0, "spread must be at least 1, got 0"),
        ("single_label", "search", [3], r"search: expected two numbers or none"),
        ("walkthrough", "memory_size", 40, "memory_size must be 1 to 39, got 40"),
    ],
)
def test_the_first_cell_refuses_what_later_ones_cannot_take(
    name, parameter, value, message
):
    scope = definitions(name, "runs") | Settings.of("smoke", name).values
    scope[parameter] = value
    cells = nbformat.read(notebook_file(name), as_version=4).cells
    (first,) = [cell.source for cell in cells if "Settings.read" in cell.source]
    with pytest.raises(ValueError, match=message):
        exec(first, scope)


def test_a_parameter_that_no_cell_has_set_is_named():
    values = {name: value for name, value in SWEEP.items() if name != "rhos"}
    with pytest.raises(ValueError, match="expected the parameters rhos of rho_sweep"):
        Settings.read("rho_sweep", values)


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        (
            "rhos:",
            "rho_values:",
            "the parameter rhos in the cell of rho_sweep, got none",
        ),
        ("profile:", "folder:", "the parameters profile of rho_sweep, got none"),
        ("int = None", "int = 5 * 100", "`memory_size: int = 5 .* 100`"),
        ("list[float]", "list", r"a line such as .* got `rhos: list = "),
        ("[0, 1, 2]", "0", "got `seeds: list.int. = 0`"),
    ],
)
def test_a_parameter_that_a_user_declares_otherwise_is_named(
    line, other, message, monkeypatch
):
    (source,) = notebook.cells_with("parameters", "rho_sweep")
    changed = source.replace(line, other)
    assert changed != source
    monkeypatch.setattr(notebook, "cells_with", lambda *_: [changed])
    notebook.declared.cache_clear()
    values = {}
    exec(changed, values)
    runs = functions_of("rho_sweep").runs
    try:
        with pytest.raises((ValueError, AttributeError), match=message):
            runs(Settings.read("rho_sweep", values))
    finally:
        notebook.declared.cache_clear()


def test_a_name_that_the_cell_does_not_declare_is_refused():
    injected = {"In": ["", "# Parameters\nrhoo = 0.1\nseeds = [1]\n"]}
    with pytest.raises(
        ValueError, match=r"unknown parameter 'rhoo' of rho_sweep; did "
    ):
        Settings.read("rho_sweep", SWEEP | injected)
    with pytest.raises(
        ValueError, match=r"'method' of rho_sweep; its parameters: prof"
    ):
        Settings.of("quick", "rho_sweep", method="PRS")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory-size: 3", "unknown parameter 'memory-size'.* did you mean 'memory_s"),
        ("seeds: [.nan]", "seeds must be a whole number, got nan"),
        ("rhos: [[1]]", r"rhos must be a number, got \[1\]"),
        ("a: b: c", "expected YAML in .*rho_sweep.yaml, got mapping values"),
        ("", "expected lines `name: value` in .*rho_sweep.yaml, got None"),
    ],
)
def test_a_damaged_profile_is_refused(text, message, tmp_path, monkeypatch):
    file = tmp_path / "rho_sweep.yaml"
    file.write_text(text)
    monkeypatch.setattr(notebook, "params_file", lambda profile, name: file)
    with pytest.raises((ValueError, TypeError), match=message):
        Settings.of("smoke", "rho_sweep")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("method", "unknown method 'gSS'"),
        ("few_seeds", "few_seeds: expected methods .* 'gSS'"),
    ],
)
def test_a_method_that_is_not_known_is_refused_by_either_parameter(name, message):
    value = {"method": ["gSS"], "few_seeds": {"gSS": 1}}[name]
    with pytest.raises(ValueError, match=message):
        Settings.of("quick", "main_results", **{name: value})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ({"GSS": 3}, {"GSS": 3}),
        ("GSS: 3, reutersseq:10", {"GSS": 3, "reutersseq": 10}),
        ("{'GSS': 3}", {"GSS": 3}),
        ("", {}),
        ("{}", {}),
    ],
)
def test_seeds_by_name_are_read_from_text(text, value):
    assert Settings.of("quick", "main_results", few_seeds=text).few_seeds == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (":3", "few_seeds: expected methods .* got ''"),
        ("GSS", "few_seeds of GSS must be a whole number, got ''"),
        ({"GSS": [0, 1]}, r"few_seeds of GSS must be a whole number, got \[0, 1\]"),
        ({"GSS": None}, "few_seeds of GSS must be a whole number, got None"),
        (["GSS"], r"expected few_seeds by name, such as {'GSS': 3}, got \['GSS'\]"),
        (3, "expected few_seeds by name, such as {'GSS': 3}, got 3"),
    ],
)
def test_seeds_by_name_need_a_name_and_a_number(value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Settings.of("quick", "main_results", few_seeds=value)


@pytest.mark.parametrize("name", ["costly", "costly_seeds"])
def test_a_name_of_before_is_told_the_name_of_today(name):
    message = f"unknown parameter '{name}' of main_results; it is now few_seeds, as in"
    with pytest.raises(ValueError, match=message):
        Settings.of("quick", "main_results", **{name: []})


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("main_results", {"metrics": "mAB"}, "unknown metric 'mAB'; known metrics: "),
        ("main_results", {"dataset": "imbal-digits"}, "several labels a sample, got "),
        ("single_label", {"dataset": "digits70tiny"}, "one label a sample, got "),
        ("memory_distribution", {"method": "EWC"}, "method with a memory 'EWC'"),
        ("gradient_variance", {"method": "Finetune"}, "a memory 'Finetune'; known met"),
        ("tail_forgetting", {"method": "Multitask"}, "a stream 'Multitask'; known"),
        (
            "schedules_and_memory",
            {"dataset": "imbal-digits"},
            "several labels a sample",
        ),
        (
            "schedules_and_memory",
            {"shares": 1.0},
            "shares with another memory than 120",
        ),
        ("single_label", {"orders": "one+two"}, "expected an order of classes such as"),
    ],
)
def test_a_notebook_refuses_what_it_cannot_show(name, values, message, monkeypatch):
    settings = Settings.of("quick", name, **values)
    monkeypatch.setattr(Settings, "of", lambda *_: settings)
    with pytest.raises(ValueError, match=message):
        runs_of("quick", name)


def test_the_power_of_allocation_is_each_data_sets_own_unless_it_is_given():
    def rhos():
        prs = [c for c in runs_of("quick", "feature_tsne") if c.method == "PRS"]
        return {config.dataset: config.resolved["rho"] for config in prs}

    assert rhos() == {"imbal-digits": 0.0, "cocoseq-mini": -0.03}


def test_other_parameters_write_into_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    assert Settings.of("smoke", "rho_sweep").folder == tmp_path / "smoke"
    other = Settings.of("quick", "rho_sweep", rhos=[0.1, 1.0], seeds=[0, 1])
    assert other.folder == tmp_path / "custom" / "rhos=0.1,1.0,seeds=0,1"
    smoke = Settings.of("smoke", "rho_sweep", seeds=list(range(1, 99, 2)))
    assert smoke.folder.name.startswith("profile=smoke,seeds=1,3,")
    assert len(smoke.folder.name) < 120
    wider = Settings.of("smoke", "rho_sweep", seeds=smoke.seeds, rhos=[1.0])
    assert smoke.folder != wider.folder
    other.save(None, pd.DataFrame({"value": [1 / 3]}), "numbers")
    assert (other.folder / "rho_sweep_numbers.csv").read_text() == "value\n0.333333\n"
    beside = yaml.safe_load((other.folder / "rho_sweep.yaml").read_text())
    assert Settings.read("rho_sweep", beside) == other


def test_devices_have_folders_of_their_own():
    first, second = (
        Settings.of("quick", "rho_sweep", device=name) for name in ("cuda:1", "cuda")
    )
    assert first.folder != second.folder


def test_what_comes_last_wins_also_where_it_is_the_notebooks_own_value(tmp_path):
    """`-p` over `-f` over the cell, through papermill itself."""
    ours = declared("walkthrough")["samples"].default
    code = (
        "import sys, papermill; from papermill.parameterize import parameterize_notebook;"
        "from papermill.iorw import load_notebook_node;"
        "import yaml; values = yaml.safe_load(open(sys.argv[2]));"
        f"values |= {{'samples': {ours}}};"
        "nb = parameterize_notebook(load_notebook_node(sys.argv[1]), values);"
        "scope = {};"
        "[exec(c.source, scope) for c in nb.cells if {'parameters',"
        "'injected-parameters'} & set(c.metadata.get('tags', []))];"
        "from prslib.report.notebook import Settings;"
        "print(Settings.read('walkthrough', scope).values)"
    )
    profile = project_root() / "params" / "smoke" / "walkthrough.yaml"
    command = [sys.executable, "-c", code, str(notebook_file("walkthrough"))]
    done = subprocess.run(
        [*command, str(profile)],
        cwd=project_root(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"'samples': {ours}" in done.stdout
    assert "'rhos': [0.0, 1.0]" in done.stdout


def test_a_picture_is_its_file_and_says_what_it_shows(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr("IPython.display.display", shown.append)
    custom = Settings.of("quick", "rho_sweep", seeds=[7])
    figure, (left, right) = plt.subplots(1, 2, figsize=(2, 1), dpi=100)
    figure.suptitle("cocoseq-mini")
    left.plot([1, 2], label="PRS")
    left.set_title("majority", loc="left")
    left.set(xlabel=r"power $\rho$", ylabel="mAP (%)")
    right.set(xticks=[], yticks=[])
    custom.save(figure, pd.DataFrame({"value": [1.0]}), "picture")
    assert not plt.fignum_exists(figure.number)  # or it would be drawn once more
    (image,) = shown
    assert image.data == (custom.folder / "rho_sweep_picture.png").read_bytes()
    words = "cocoseq-mini seeds=[7]; majority: mAP (%) over power rho. Marks: PRS"
    about = {"width": 200, "alt": words, "file": "rho_sweep_picture.png"}
    assert image.metadata == about


def test_a_picture_for_phones_has_its_panels_below_each_other(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr("IPython.display.display", shown.append)
    settings = Settings.of("seeds", "rho_sweep")
    figure, _ = plt.subplots(1, 3, figsize=(11, 3))
    settings.save(figure, pd.DataFrame({"value": [1.0]}), "picture", narrow=1)
    about = shown[0].metadata
    assert about["narrow"] == "rho_sweep_picture_narrow.png"
    height, width, _ = plt.imread(settings.folder / about["narrow"]).shape
    assert height > width
    height, width, _ = plt.imread(settings.folder / about["file"]).shape
    assert height < width


def test_quick_of_which_no_page_is_made_has_no_pictures_for_phones(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    figure, _ = plt.subplots(1, 3)
    settings = Settings.of("quick", "rho_sweep")
    settings.save(figure, pd.DataFrame({"value": [1.0]}), "picture", narrow=1)
    assert [file.name for file in tmp_path.rglob("*.png")] == ["rho_sweep_picture.png"]


OPEN = ("rho_sweep", "schedules_and_memory", "tail_forgetting", "when_it_pays")
BOTH = {"open", "balanced"}


@pytest.mark.parametrize(
    ("name", "test_sets"),
    [
        *((name, {"open"}) for name in (*OPEN, "memory_distribution")),
        ("main_results", BOTH),
        ("precision_recall", BOTH),
        ("imbalanced_test", {"imbalanced", "balanced"}),
        ("deviations", {"both"}),
    ],
)
@pytest.mark.usefixtures("registers")
def test_notebooks_test_on_the_open_images_or_say_where(name, test_sets):
    runs = runs_of("quick", name)
    tested = {c.resolved["test_set"] for c in runs if c.dataset == "cocoseq-mini"}
    assert tested == test_sets


def test_both_powers_are_tested_on_both_test_sets():
    prs = [c for c in runs_of("quick", "imbalanced_test") if c.method == "PRS"]
    tested = {(c.resolved["rho"], c.test_set) for c in prs}
    assert tested == {*product((0.5, -0.03), ("balanced", "imbalanced"))}


def test_a_share_of_the_memory_is_rounded():
    values = {"dataset": "digits49seq", "memory_share": 0.6}
    settings = Settings.of("quick", "tail_forgetting", **values)
    runs = functions_of("tail_forgetting").runs(settings)
    assert {c.memory_size for c in runs if c.method == "CRS"} == {200}  # of 333
    assert all(config.class_forgetting for config in runs)


def test_runs_are_tested_elsewhere_where_there_is_an_open_test_set():
    asked = configs(dataset=["cocoseq-tiny", "digits70tiny"], method="CRS")
    for test_set in ("open", "balanced"):
        coco, digits = notebook.tested_on(asked, test_set)
        assert coco.test_set == test_set and coco.to_train == asked[0].to_train
        assert digits == asked[1]


def test_runs_of_some_methods_choose_a_threshold():
    asked = configs(dataset="digits70tiny", method=["CRS", "GSS"])
    made = notebook.with_own_thresholds(asked, ["CRS"])
    assert [config.own_threshold for config in made] == [True, False]
