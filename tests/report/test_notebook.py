"""The parameters of a notebook, what is refused, and what is shown and written."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from cells import functions_of

from prslib.report import notebook
from prslib.report.notebook import Settings, defaults_of

SWEEP = defaults_of("rho_sweep")


def test_a_refusal_is_shown_without_frames():
    with pytest.raises(ValueError, match="seeds as a list") as caught:
        Settings.read("rho_sweep", SWEEP | {"seeds": 3})
    assert caught.value._render_traceback_() == [str(caught.value)]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("rho_sweep", {"seeds": "0,1"}, "expected seeds as a list.* -y, got '0,1'"),
        ("main_results", {"rho": [0.1, 0.5]}, "rho as a single value, got .0.1, 0.5"),
        ("rho_sweep", {"rhos": [0.5]}, "two or more values in rhos, got .0.5"),
        ("rho_sweep", {"profile": "fast"}, "unknown profile 'fast'; known"),
        ("main_results", {"metrics": ["mAB"]}, "unknown metric 'mAB'; known"),
        ("main_results", {"tuned_threshold": ["prs"]}, "unknown method 'prs'"),
        ("main_results", {"method": ["PRS", "OCDM"]}, "method with CRS and PRS, got"),
        (
            "architectures",
            {"method": ["PRS", "CRS", "Multitask"]},
            "other than Multitask",
        ),
        ("single_label", {"dataset": ["digits70tiny"]}, "one label per sample, got "),
        ("imbalanced_test", {"dataset": ["imbal-digits"]}, "several labels per sample"),
    ],
)
def test_bad_values_are_refused_in_one_line_before_training(name, values, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        values = {"profile": "smoke", "notebook": name} | values
        functions_of(name).runs(Settings.of(**values))
    assert "\n" not in str(caught.value)


def test_the_cell_of_papermill_is_read_and_its_names_are_checked():
    names = SWEEP | {"seeds": [3], "In": ["seeds = [0]", "# Parameters\nseeds = [3]"]}
    assert Settings.read("rho_sweep", names).seeds == [3]
    names["In"] = ["# Parameters\nrhoo = 0.1"]
    with pytest.raises(ValueError, match="unknown parameter of rho_sweep 'rhoo'"):
        Settings.read("rho_sweep", names)
    with pytest.raises(ValueError, match=r"each seed once, got \[0, 0\]"):
        Settings.read("rho_sweep", names | {"seeds": [0, 0], "In": []})


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


@pytest.fixture
def shown(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "prslib.report.notebook.display", lambda *outputs: shown.extend(outputs)
    )
    return shown


TABLE = pd.DataFrame({"value": [1 / 3]})


def test_a_picture_is_shown_and_written_only_where_save_says(figure, shown, tmp_path):
    settings = Settings.of("quick", "rho_sweep")
    settings.write(TABLE, "picture")
    settings.show(figure, "picture", narrow=1)
    assert not plt.fignum_exists(figure.number)  # or it would be drawn once more
    settings.save = str(tmp_path / "out")
    settings.write(TABLE, "picture")
    settings.show(figure, "picture", narrow=1)  # no article is made of quick
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["rho_sweep_picture.csv", "rho_sweep_picture.png"]
    written = (tmp_path / "out" / "rho_sweep_picture.png").read_bytes()
    assert [image.data for image in shown] == [written, written]
    table = (tmp_path / "out" / "rho_sweep_picture.csv").read_text()
    assert table == "value\n0.333333\n"
    words = "COCO. Panels: majority. Vertical axis: mAP (%). "
    words += "Horizontal axis: power rho. Legend: PRS."
    about = {"width": 200, "alt": words, "file": "rho_sweep_picture.png"}
    assert shown[0].metadata == about


def test_a_rho_or_memory_that_replaces_the_default_is_named(figure, shown):
    settings = Settings.of("smoke", "main_results", rho=0.1)
    settings.write(TABLE, "picture")
    settings.show(figure, "picture", "mAP on cocoseq-mini")
    assert figure.get_suptitle() == "mAP on COCO, rho 0.1"
    answer = settings.write_answer("PRS gains 1 point over CRS.").data
    assert answer.endswith("Changed parameters: rho 0.1.**")
    # these notebooks name theirs, or compare several
    names = ("imbalanced_test", "walkthrough", "your_stream")
    assert not any(Settings.of("quick", name).say_changed() for name in names)
    changed = Settings.of("quick", "imbalanced_test", rho=1.0, memory_size=30)
    assert changed.say_changed() == ", rho 1, memory of 30"


@pytest.mark.parametrize("given", ["inputs", "labels", "about"])
def test_your_stream_needs_inputs_and_labels_together(given):
    settings = Settings.of("quick", "your_stream", **{given: "file.csv"})
    with pytest.raises(ValueError, match="expected inputs and labels together, got"):
        functions_of("your_stream").read_stream(settings)


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


def test_a_copied_profile_has_the_name_of_its_folder(tmp_path, monkeypatch):
    file = tmp_path / "rho_sweep.yaml"
    file.write_text("profile: smoke\nseeds: [7]\n")
    monkeypatch.setattr(notebook, "params_file", lambda profile, name: file)
    values = notebook.profile_values("quick", "rho_sweep")
    assert values == {"profile": "quick", "seeds": [7]}
