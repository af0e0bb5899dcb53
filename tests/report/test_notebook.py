"""The parameters of a notebook, what is refused, and what is shown and written."""

import subprocess
import sys
from collections import defaultdict
from itertools import product

import ipywidgets
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from cells import functions_of

from prslib.paths import known_notebooks, notebook_file, project_root
from prslib.report import grids, notebook
from prslib.report.asked import configs
from prslib.report.notebook import Settings, defaults_of
from prslib.report.tables import labels_of
from prslib.report.topics import definitions, runs_of

SWEEP = defaults_of("rho_sweep")


def test_the_notebooks_values_are_the_settings():
    settings = Settings.read("rho_sweep", SWEEP | {"seeds": [4], "unrelated": 3})
    about = {"notebook": "rho_sweep", "tables": {}}
    assert vars(settings) == SWEEP | {"seeds": [4]} | about
    assert "rho_sweep" not in settings._repr_markdown_()
    assert "| `seeds` | [4] |" in settings._repr_markdown_()


def test_a_device_that_is_not_here_is_refused_unless_it_is_the_profiles():
    with pytest.raises(ValueError, match="unknown device 'cuda:99'; known devices"):
        Settings.read("rho_sweep", SWEEP | {"device": "cuda:99"})
    paper = vars(Settings.of("paper", "rho_sweep"))
    assert Settings.read("rho_sweep", paper).device == "cuda"


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("rho_sweep", {"rhoo": 0.1}, "unknown parameter of rho_sweep 'rhoo'; known"),
        ("rho_sweep", {"seeds": "0,1"}, "expected seeds as a list.* -y, got '0,1'"),
        ("rho_sweep", {"seeds": 5}, "expected seeds as a list, which .*, got 5"),
        ("rho_sweep", {"profile": "fast"}, "unknown profile 'fast'; known profiles"),
        ("main_results", {"few_seeds": "GSS: 3"}, "expected few_seeds as a dict"),
        ("rho_sweep", {"dataset": ["digits"]}, "unknown dataset 'digits'; known data"),
        ("rho_sweep", {"dataset": []}, "expected at least one of dataset, got none"),
        ("rho_sweep", {"seeds": [0.5]}, "seed must be a whole number, got 0.5"),
        ("rho_sweep", {"rhos": [0.1, "high"]}, "rho must be a number, got 'high'"),
        ("main_results", {"metrics": ["mAB"]}, "unknown metric 'mAB'; known metrics"),
        ("main_results", {"own_threshold": ["prs"]}, "unknown method 'prs'"),
        ("main_results", {"few_seeds": {"gSS": 1}}, "unknown method or data set 'gSS'"),
        ("main_results", {"few_seeds": {"GSS": "x"}}, "few_seeds of GSS must be a"),
        ("main_results", {"method": ["PRS", "OCDM"]}, "method with CRS and PRS, got"),
        ("main_results", {"dataset": ["imbal-digits"]}, "several labels a sample, got"),
        ("when_it_pays", {"cuts": ["cap31"]}, "unknown cut 'cap31'; known cuts"),
        ("when_it_pays", {"method": ["CRS", "PRS"]}, "method with CBRS, got"),
        ("architectures", {"costly_models": ["resnet"]}, "unknown model 'resnet'"),
        ("architectures", {"method": ["PRS", "CRS", "Multitask"]}, "beside Multitask"),
        ("memory_or_loss", {"balanced": ["hinge"]}, "unknown loss 'hinge'"),
        ("memory_or_loss", {"method": ["PRS"]}, "method: expected two or more, got"),
        ("gradient_variance", {"points": [0, 8]}, "points must be at least 1, got 0"),
        ("gradient_variance", {"method": ["EWC"]}, "method with a memory 'EWC'"),
        ("tail_forgetting", {"memory_share": -1}, "memory_size must be at least 1"),
        ("tail_forgetting", {"method": ["Multitask"]}, "a stream 'Multitask'; known"),
        ("imbalanced_test", {"method": ["CRS", "PRS"]}, "method beside PRS 'PRS'"),
        ("feature_tsne", {"neighbours": 0}, "neighbours must be at least 1"),
        ("memory_distribution", {"method": ["EWC"]}, "method with a memory 'EWC'"),
        ("single_label", {"dataset": ["digits70tiny"]}, "one label a sample, got "),
        ("single_label", {"orders": ["one+two"]}, "an order of classes such as"),
        ("schedules_and_memory", {"shares": [1.0]}, "shares with another memory than"),
    ],
)
def test_bad_values_are_refused_in_one_line_before_training(name, values, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        values = {"profile": "smoke", "notebook": name} | values
        functions_of(name).runs(Settings.of(**values))
    assert "\n" not in str(caught.value)


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
    scope = definitions(name, "runs", "functions") | vars(Settings.of("smoke", name))
    scope[parameter] = value
    cells = nbformat.read(notebook_file(name), as_version=4).cells
    (first,) = [cell.source for cell in cells if "Settings.read" in cell.source]
    with pytest.raises(ValueError, match=message):
        exec(first, scope)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory-size: 3", "unknown parameter of rho_sweep 'memory-size'; known"),
        ("a: b: c", "expected YAML in .*rho_sweep.yaml, got mapping values"),
        ("- rhos", "expected lines `name: value` in .*rho_sweep.yaml, got .'rhos'"),
        ("", "expected lines `name: value` in .*rho_sweep.yaml, got None"),
    ],
)
def test_a_damaged_profile_is_refused(text, message, tmp_path, monkeypatch):
    file = tmp_path / "rho_sweep.yaml"
    file.write_text(text)
    monkeypatch.setattr(notebook, "params_file", lambda profile, name: file)
    with pytest.raises(ValueError, match=message) as caught:
        Settings.of("smoke", "rho_sweep")
    assert "\n" not in str(caught.value)


def papermill(*options):
    """Run the cells of parameters of a notebook as papermill sets them."""
    code = (
        "import sys, papermill.cli, papermill.execute as e;"
        "run = lambda name, nb, **_: [exec(c.source, scope) for c in nb.cells if "
        "{'parameters', 'injected-parameters'} & {*c.metadata.get('tags', [])}"
        "] and scope['In'].extend(c.source for c in nb.cells) or nb;"
        "scope = {'In': []};"
        "e.papermill_engines.execute_notebook_with_engine = run;"
        "papermill.cli.papermill(sys.argv[1:], standalone_mode=False);"
        "from prslib.report.notebook import Settings;"
        "print(Settings.read('walkthrough', scope))"
    )
    file = str(notebook_file("walkthrough"))
    command = [sys.executable, "-c", code, file, "/dev/null", *options]
    return subprocess.run(
        command, cwd=project_root(), capture_output=True, text=True, check=False
    )


def test_what_comes_last_wins_also_where_it_is_the_notebooks_own_value():
    """`-p` over `-f` over the cell, through papermill itself."""
    ours = str(defaults_of("walkthrough")["samples"])
    profile = "params/smoke/walkthrough.yaml"
    done = papermill("-f", profile, "-p", "samples", ours, "-y", "rhos: [0.5]")
    assert f"samples={ours}" in done.stdout
    assert "rhos=[0.5]" in done.stdout
    done = papermill("-p", "rhoo", "0.1")
    assert "ValueError: unknown parameter of walkthrough 'rhoo'" in done.stderr


@pytest.fixture
def figure():
    figure, (left, right) = plt.subplots(1, 2, figsize=(2, 1), dpi=100)
    figure.suptitle("cocoseq-mini")
    left.plot([1, 2], label="PRS")
    left.set_title("majority", loc="left")
    left.set(xlabel=r"power $\rho$", ylabel="mAP (%)")
    right.set(xticks=[], yticks=[])
    yield figure
    plt.close(figure)


class Handle:
    """Of a displayed picture, which another one may replace."""

    def __init__(self, shown):
        self.update = shown.append


@pytest.fixture
def shown(monkeypatch):
    shown = []

    def display(*outputs, **options):
        shown.extend(outputs)
        return Handle(shown)

    monkeypatch.setattr("IPython.display.display", display)
    return shown


TABLE = pd.DataFrame({"value": [1 / 3]})


def test_a_picture_is_shown_and_written_only_where_save_says(figure, shown, tmp_path):
    settings = Settings.of("quick", "rho_sweep")
    settings.write(TABLE, "picture")
    settings.show(figure, "picture", narrow=1)
    assert not plt.fignum_exists(figure.number)  # or it would be drawn once more
    settings.save = str(tmp_path / "out")
    settings.write(TABLE, "picture")
    settings.show(figure, "picture", narrow=1)  # no page is made of quick
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["rho_sweep_picture.csv", "rho_sweep_picture.png"]
    written = (tmp_path / "out" / "rho_sweep_picture.png").read_bytes()
    assert [image.data for image in shown] == [written, written]
    table = (tmp_path / "out" / "rho_sweep_picture.csv").read_text()
    assert table == "value\n0.333333\n"
    words = "cocoseq-mini; majority: mAP (%) over power rho. Marks: PRS"
    about = {"width": 200, "alt": words, "file": "rho_sweep_picture.png"}
    assert shown[0].metadata == about


def test_a_picture_for_phones_has_its_panels_below_each_other(figure, shown, tmp_path):
    settings = Settings.of("seeds", "rho_sweep", save=str(tmp_path))
    figure.set_size_inches(11, 3)
    settings.write(TABLE, "picture")
    settings.show(figure, "picture", narrow=1)
    about = shown[0].metadata
    height, width, _ = plt.imread(tmp_path / about["narrow"]).shape
    assert height > width
    height, width, _ = plt.imread(tmp_path / about["file"]).shape
    assert height < width


def test_a_table_is_read_back_as_a_redraw_reads_it(tmp_path, monkeypatch):
    """From what a cell has kept or, in a redraw, from the file."""
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    settings = Settings.of("smoke", "rho_sweep", save=str(tmp_path / "smoke"))
    table = pd.DataFrame({"method": ["CRS", None], "value": [np.nan, 1 / 3]})
    table = table.assign(clearly=["", ""], draws=[np.ones(2)] * 2)
    settings.write(table, "kept")
    kept = settings.table("kept")
    assert kept["method"].tolist() == ["CRS", ""] and kept["clearly"].tolist() == [
        "",
        "",
    ]
    np.testing.assert_allclose(kept["value"], [np.nan, 0.333333])
    assert "draws" not in kept
    settings = Settings.of("smoke", "rho_sweep")  # other parameters, perhaps
    with pytest.raises(KeyError, match="kept"):  # never from a folder by chance
        settings.table("kept")
    settings.redraw = True
    pd.testing.assert_frame_equal(settings.table("kept"), kept)


def test_a_picture_without_its_table_is_refused(figure, shown):
    with pytest.raises(KeyError, match="no_table"):
        Settings.of("smoke", "rho_sweep").show(figure, "no_table")
    assert not shown


def test_a_slider_above_a_picture_draws_it_anew(figure, shown):
    def redraw(memory_size):
        figure, ax = plt.subplots(figsize=(memory_size, 1), dpi=100)
        ax.set_title(f"{memory_size} samples", loc="left")
        return figure

    settings = Settings.of("quick", "rho_sweep")
    settings.write(TABLE, "picture")
    slider = ipywidgets.IntSlider(1, min=1, max=3)
    settings.show(figure, "picture", redraw=redraw, memory_size=slider)
    controls, first = shown
    assert controls.children == (slider,) and slider.description == "memory size"
    slider.value = 3
    assert shown[2:] != [] and shown[-1].data != first.data
    assert shown[-1].metadata == {"width": 300, "alt": "3 samples"}
    assert not plt.get_fignums()


def test_tables_are_shown_for_each_data_set_and_test_set(shown):
    settings = Settings.of("smoke", "main_results")
    row = {"method": "CRS", "group": "overall", "metric": "mAP", "measure": "score"}
    row |= {"dataset": "cocoseq-tiny", "mean": 40.0, "sd": 1.0, "published": np.nan}
    tests = ["balanced", "imbalanced"]
    settings.write(pd.DataFrame([row | {"test_set": name} for name in tests]), "table")
    settings.show_tables("table", metrics=["mAP"])
    first, _, second, _ = shown
    assert "cocoseq-tiny, classes alike" in first.data
    assert "cocoseq-tiny, as the stream comes" in second.data


# read no scores, or those of single classes; shortcuts are compared with classes alike
OTHERWISE = {"feature_tsne", "gradient_variance", "memory_distribution"}
OTHERWISE |= {"tail_forgetting", "deviations"}


@pytest.mark.parametrize("name", sorted({*known_notebooks("quick")} - OTHERWISE))
@pytest.mark.usefixtures("registers")
def test_scores_are_read_on_both_kinds_of_test_where_a_data_set_has_both(name):
    tests_of = defaultdict(set)
    for config in runs_of("quick", name):
        tests_of[config.dataset].add(config.resolved["test_set"])
    for dataset, tests in tests_of.items():
        kinds = {"balanced", "imbalanced"} & labels_of(dataset).tests.keys()
        assert tests - {"open"} == (kinds or {"full"}), dataset


def test_prs_has_the_power_of_its_data_set_and_is_tested_where_the_paper_tests():
    def powers(name):
        prs = [c for c in runs_of("quick", name) if c.method == "PRS"]
        return {(c.dataset, c.resolved["rho"], c.test_set) for c in prs}

    own = {("imbal-digits", 0.0), ("cocoseq-mini", -0.03)}
    assert {row[:2] for row in powers("feature_tsne")} == own
    both = {*product((0.5, -0.03), ("balanced", "imbalanced"))}
    assert {row[1:] for row in powers("imbalanced_test")} == both


def test_a_share_of_the_memory_is_rounded():
    values = {"dataset": ["digits49seq"], "memory_share": 0.6}
    settings = Settings.of("quick", "tail_forgetting", **values)
    runs = functions_of("tail_forgetting").runs(settings)
    assert {c.memory_size for c in runs if c.method == "CRS"} == {200}  # of 333


def test_runs_are_read_on_the_tests_that_their_data_set_has():
    names = ["cocoseq-tiny", "digits70tiny", "imbal-digits-tiny"]
    asked = configs(dataset=names, method="CRS")
    several, one_label = ["balanced", "imbalanced"], ["full"]
    read = grids.on_tests(asked)
    assert [config.test_set for config in read[:2]] == several
    of_set = {name: [c.test_set for c in read if c.dataset == name] for name in names}
    assert of_set == dict(zip(names, (several, several, one_label), strict=True))
    assert read[0].to_train == read[1].to_train == asked[0].to_train
    coco, *others = grids.on_open(asked)
    assert coco.test_set == "open" and coco.to_train == asked[0].to_train
    assert others == asked[1:]
