"""The parameters of a notebook, what they refuse, and what is saved."""

import math
from dataclasses import asdict, replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml

from prslib.report import (
    datasets,
    gradient_variance,
    main_results,
    memory_distribution,
    notebook,
    rho_sweep,
    single_label,
    tail_forgetting,
    walkthrough,
)
from prslib.report.rho_sweep import Settings

PARAMETERS = asdict(Settings())


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seeds", "0,1,2", [0, 1, 2]),
        ("seeds", "[3, 4]", [3, 4]),
        ("seeds", "[]", []),
        ("seeds", 5, [5]),
        ("dataset", "digits70tiny,digits49tiny", ["digits70tiny", "digits49tiny"]),
        ("rhos", "-1e-1,0", [-0.1, 0.0]),
        ("rhos", [0, "1e3"], [0.0, 1000.0]),  # text to YAML
        ("memory_size", None, None),
        ("memory_size", "None", None),
    ],
)
def test_what_a_command_line_can_write_is_understood(name, text, value):
    settings = Settings.read(PARAMETERS | {name: text, "unrelated": 3})
    assert asdict(settings) == PARAMETERS | {name: value}


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("dataset", "digits", ValueError, "unknown dataset 'digits'; known data"),
        ("rhos", math.nan, ValueError, "rhos must be finite"),
        ("rhos", [0.1, "high"], TypeError, "rhos must be a number, got 'high'"),
        ("seeds", [0.5], TypeError, "seeds must be a whole number, got 0.5"),
        ("device", 1, TypeError, "device must be text, got 1"),
        ("profile", "fast", ValueError, "known profiles: laptop, paper, quick, seeds"),
    ],
)
def test_bad_values_stop_the_notebook_before_it_trains(name, value, error, message):
    with pytest.raises(error, match=message):
        rho_sweep.runs(Settings.read(PARAMETERS | {name: value}))


def test_a_profile_with_another_parameter_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "rho_sweep.yaml"
    file.write_text("memory-size: 3")
    monkeypatch.setattr(notebook, "params_file", lambda profile, name: file)
    with pytest.raises(ValueError, match="unknown parameter 'memory-size'; known para"):
        Settings.of("smoke")


@pytest.mark.parametrize(
    ("topic", "fields", "message"),
    [
        (main_results, {"metrics": "mAB"}, "unknown metric 'mAB'; known metrics: "),
        (main_results, {"dataset": "imbal-digits"}, "several labels an image, got "),
        (datasets, {"dataset": "imbal-digits"}, "several labels an image, got 'imbal-"),
        (main_results, {"rho": [0.0, 1.0, 2.0]}, "one length, got 2 of dataset, 3 of"),
        (memory_distribution, {"method": "EWC"}, "unknown method 'EWC'; known methods"),
        (gradient_variance, {"method": "Finetune"}, "method 'Finetune'; known methods"),
        (tail_forgetting, {"method": "Multitask"}, "'Multitask'; known methods: "),
        (single_label, {"orders": "one+two"}, "expected an order of classes such as"),
        (walkthrough, {"samples": 199}, "samples must be at least 200, got 199"),
    ],
)
def test_a_topic_refuses_what_it_cannot_show(topic, fields, message):
    with pytest.raises(ValueError, match=message):
        settings = topic.Settings(**fields)
        topic.runs(settings)


def test_other_parameters_write_into_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    assert Settings.of("smoke").folder == tmp_path / "smoke"
    other = replace(Settings(), rhos=[0.1, 1.0], seeds=[0, 1])
    assert other.folder == tmp_path / "custom" / "seeds=0,1,rhos=0.1,1.0"
    # a profile brings its values where the notebook's own are
    smoke = Settings.read(PARAMETERS | {"profile": "smoke", "seeds": [7]})
    assert smoke == replace(Settings.of("smoke"), seeds=[7])
    smoke = replace(smoke, seeds=list(range(1, 99, 2)))
    assert smoke.folder.name.startswith("profile=smoke,seeds=1,3,")
    assert len(smoke.folder.name) < 120
    assert smoke.folder != replace(smoke, rhos=[1.0]).folder
    other.save(None, pd.DataFrame({"value": [1 / 3]}), "numbers")
    assert (other.folder / "rho_sweep_numbers.csv").read_text() == "value\n0.333333\n"
    beside = yaml.safe_load((other.folder / "rho_sweep.yaml").read_text())
    assert Settings.read(beside) == other


def test_a_picture_is_its_file_and_says_what_it_shows(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr("IPython.display.display", shown.append)
    custom = Settings(seeds=[7])
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
