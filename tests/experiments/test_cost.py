"""``python -m prslib plan``: which runs are missing, and how long they take."""

import time
from dataclasses import replace

import numpy as np
import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from prslib.cli import main
from prslib.datasets import load_dataset
from prslib.datasets.features import MINI
from prslib.datasets.prepared import Selection
from prslib.experiments import cost
from prslib.experiments.cost import measure_step
from prslib.experiments.store import RECORD, Store
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig
from prslib.training.grids import configs
from prslib.training.replay import held_out_rows, stream

MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    "config",
    [
        *configs(**MLP, method=["EWC", "ExStream", "Finetune", "GSS", "DER++"]),
        RunConfig("cocoseq", model="convnet", batch_size=2, replay_batch_size=2),
        RunConfig("cocoseq-features", batch_size=2, replay_batch_size=2),
    ],
    ids=lambda config: f"{config.method}-{config.dataset}",
)
def test_a_step_of_every_kind_is_measured(config, monkeypatch, tmp_path):
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    (tmp_path / "cocoseq").mkdir()
    Selection.load(MINI).save(tmp_path / "cocoseq" / "labels.npz")  # they suffice
    monkeypatch.setattr(cost, "SECONDS", 0.0)
    monkeypatch.setattr(cost, "BLANK", 100)
    assert 0 < measure_step(config) < 30


@pytest.mark.parametrize("batch_size", [1150, 575])
def test_a_run_of_a_step_or_two_is_timed_without_its_scores(monkeypatch, batch_size):
    monkeypatch.setattr(cost, "_unscored", lambda *_: time.sleep(1))
    settings = MLP | {"method": "Multitask", "batch_size": batch_size}
    assert 0 < measure_step.__wrapped__(RunConfig(**settings)) < 1


def test_a_plan_counts_what_is_missing_once(monkeypatch, capsys):
    monkeypatch.setattr(cost, "measure_step", lambda *_: 1.0)
    plain, *others = configs(**MLP, method=["CRS", "PRS"])
    watched = [RunConfig(**MLP, method="CRS", variance_points=n) for n in (5, 2)]
    runs = {"main_results": [plain, *others], "gradient_variance": [plain, *watched]}
    runs_of = "prslib.report.topics.runs_of"
    monkeypatch.setattr(runs_of, lambda _profile, name: runs[name])
    steps = []
    hook = register_optimizer_step_post_hook(lambda *_: steps.append(1))
    run_all([plain], workers=1)
    hook.remove()
    Store().path(plain, RECORD).unlink()  # its time would count
    assert main(["plan", "--profile", "smoke", *runs]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split()[-4:] for line in lines[1:4]]
    assert [cell[:2] for cell in cells] == [["2", "1"], ["3", "2"], ["4", "3"]]
    # of PRS; of CRS, watched twice; of both
    expected = [len(steps), len(steps), 2 * len(steps)]
    assert [int(cell[2]) for cell in cells] == expected
    hours = [float(cell[3]) for cell in cells]
    np.testing.assert_allclose(hours, np.array(expected) / 3600, rtol=0.01)
    assert lines[4].startswith("hours of 3 runs: steps timed on cpu (")


def test_a_plan_has_the_second_training_of_a_threshold(monkeypatch):
    monkeypatch.setattr(cost, "measure_step", lambda *_: 3600.0)
    config = RunConfig("cocoseq-tiny", "CRS", own_threshold=True)
    text = cost.plan([("one", [config], "cpu")], Store())
    dataset = load_dataset("cocoseq-tiny", images=False)
    trainings = ((), held_out_rows(config, dataset))
    segments = [one for rows in trainings for one in stream(config, dataset, rows)]
    steps = sum(len(segment.batches) for segment in segments)
    assert float(text.splitlines()[1].split()[-1]) == pytest.approx(steps, rel=0.05)


def test_a_plan_knows_how_long_stored_runs_took():
    """As long as most: one that was interrupted says little."""
    *stored, other = configs(**MLP, method="PRS", seed=[0, 1, 2, 3])
    for run, seconds in zip(run_all(stored, workers=1), (72, 72, 7200), strict=True):
        record = run.record | {"device": "cuda"}
        record["seconds"] = float(seconds * record["steps"])
        Store().save(replace(run, record=record))
    text = cost.plan([("one", [*stored, other], "cuda")], Store())
    assert (
        text.splitlines()[-1] == "hours of 1 runs: stored runs of the same kind on cuda"
    )
    hours = float(text.splitlines()[1].split()[-1])
    assert hours == pytest.approx(72.0 * record["steps"] / 3600, rel=0.05)


@pytest.mark.parametrize("method", ["ExStream", "GSS", "OCDM", "DER++"])
def test_steps_are_timed_with_a_full_memory(method, monkeypatch):
    config = RunConfig(**MLP, method=method)
    lengths = []

    def note(configs, dataset, device, progress, segments, score):
        lengths.append((len(progress.replay.sampler), len(progress.replay.memory)))
        for _ in range(cost.STEPS):
            progress.step += 1
            yield

    monkeypatch.setattr(cost, "train", note)
    monkeypatch.setattr(cost, "SECONDS", 0.0)
    measure_step.__wrapped__(config)
    size = config.resolved["memory_size"]
    ((slots, rows),) = lengths
    # of ExStream's classes some have a slot more, drawn at random
    classes = load_dataset(config.dataset, images=False).num_classes
    assert size - classes < slots == rows <= size


def test_operations_are_counted_from_shapes(capsys, monkeypatch):
    dataset = load_dataset(MLP["dataset"])
    pixels = dataset.train.inputs[0].size
    # a weight has two operations in each of forward pass, its gradient, its input's
    layers = [(pixels, 64), (64, 64), (64, dataset.num_classes)]
    passes = [2, 3, 3]  # nobody asks for the gradient of pixels
    sample = sum(2 * a * b * n for (a, b), n in zip(layers, passes, strict=True))
    count = {
        name: cost.count_operations(RunConfig(**MLP, method=name))
        for name in ("Finetune", "CRS", "EWC", "GSS", "DER++")
    }
    assert count["Finetune"] == 30 * sample
    assert count["CRS"] == 40 * sample
    assert count["EWC"] == 60 * sample
    assert count["GSS"] == (40 + 100 + 30) * sample
    assert count["DER++"] == 50 * sample  # two replay batches
    # the first layer's output alone, and nobody asks for its gradient
    frozen, *upper = (2 * a * b for a, b in layers)
    trained = 2 * upper[0] + 3 * upper[1]
    ewc = cost.count_operations(RunConfig(**MLP, method="EWC", frozen_stages=1))
    assert ewc == 30 * frozen + 60 * trained
    runs = lambda _profile, _name: [RunConfig(**MLP, method="CRS")]  # noqa: E731
    monkeypatch.setattr("prslib.report.topics.runs_of", runs)
    command = ["plan", "--profile", "smoke", "rho_sweep", "--tflops", "0.001"]
    assert main(command) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == "hours of 1 runs: operations that are counted, at 0.001 TFLOP/s"
    with pytest.raises(SystemExit):
        main([*command[:-1], "0"])


def test_a_resnet_is_counted_without_being_computed(monkeypatch, tmp_path):
    monkeypatch.setenv("PRSLIB_DATA", str(tmp_path))
    (tmp_path / "cocoseq").mkdir()
    Selection.load(MINI).save(tmp_path / "cocoseq" / "labels.npz")
    config = RunConfig("cocoseq", "PRS", weights="none")
    # arithmetic of 20 images of 256x256 pixels in a ResNet-101
    assert cost.count_operations(config) == pytest.approx(1.2e12, rel=0.05)


def test_a_plan_names_the_notebooks_whose_labels_are_missing(monkeypatch, capsys):
    monkeypatch.setattr(cost, "measure_step", lambda *_: 1.0)
    assert main(["plan", "--profile", "paper", "main_results", "deviations"]) == 1
    said = capsys.readouterr()
    assert "deviations" in said.out
    assert "left out: main_results: expected the environment variable" in said.err
