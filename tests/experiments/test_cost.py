"""``python -m prslib plan``: which runs are missing, and how long they take."""

import numpy as np
import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from prslib.cli import main
from prslib.datasets import DATASETS, load_dataset
from prslib.experiments import cost
from prslib.experiments.cost import blanks_for_missing, measure_step, steps_of
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig
from prslib.training.grids import configs
from prslib.training.run import run

MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "images", "classes", "tasks"),
    [
        ("cocoseq", 35072, 70, 4),
        ("nuswideseq", 48724, 49, 6),
        ("imbal-mnistseq", 11543, 10, 10),
        ("imbal-svhnseq", 14181, 10, 10),
    ],
)
def test_blanks_have_the_published_sizes_within_the_context_only(
    name, images, classes, tasks
):
    config = RunConfig(dataset=name, method="CRS")
    with blanks_for_missing() as missing:
        assert name in missing and "digits70seq" not in missing
        blank = load_dataset(name, images=False)
        assert config.hash
        assert steps_of(config) == pytest.approx(images / 10, abs=tasks)
    sizes = len(blank.train), blank.num_classes, blank.num_tasks
    assert sizes == (images, classes, tasks)
    assert tasks == len(DATASETS[name].recipe.schedule)
    with pytest.raises(FileNotFoundError):
        _ = config.hash


@pytest.mark.parametrize("method", ["CRS", "GSS", "Multitask"])
def test_the_steps_are_those_that_a_run_takes(method):
    config = RunConfig(**MLP, method=method)
    steps = []
    hook = register_optimizer_step_post_hook(lambda *_: steps.append(1))
    run(config)
    hook.remove()
    assert steps_of(config) == len(steps)


# one of each kind that a step knows, and data sets and weights that are not here
@pytest.mark.parametrize(
    "fields",
    [
        *(MLP | {"method": name} for name in ("EWC", "ExStream", "Finetune", "GSS")),
        {"dataset": "imbal-svhnseq", "method": "CRS", "model": "resnet18_imagenet"},
        {"dataset": "cocoseq-features", "method": "PRS"},
    ],
)
def test_a_step_of_every_kind_is_measured_without_its_files(fields, monkeypatch):
    if fields["dataset"] != MLP["dataset"]:
        pytest.importorskip("torchvision")
    monkeypatch.setattr(cost, "SECONDS", 0.0)
    with blanks_for_missing():
        assert 0 < measure_step(RunConfig(**fields)) < 30


def test_a_plan_counts_what_is_missing_once(monkeypatch, capsys):
    monkeypatch.setattr(cost, "measure_step", lambda *_: 1.0)
    plain, *others = configs(**MLP, method=["CRS", "PRS"])
    watched = [RunConfig(**MLP, method="CRS", variance_points=n) for n in (5, 2)]
    wanted = {"main_results": [plain, *others], "gradient_variance": watched}
    monkeypatch.setattr(
        "prslib.report.topics.runs_of", lambda _profile, name: wanted[name]
    )
    steps = steps_of(plain)
    looks = 5 * 2  # at 30 samples in memory, 20 at once
    assert steps_of(watched[0]) == steps + looks
    run_all([plain], workers=1)
    assert main(["plan", "--profile", "smoke", *wanted]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split()[-4:] for line in lines[1:4]]
    assert [cell[:2] for cell in cells] == [["2", "1"], ["2", "2"], ["4", "3"]]
    # runs that train alike count as the longest of them
    expected = [steps, steps + looks, 2 * steps + looks]
    assert [int(cell[2]) for cell in cells] == expected
    hours = [float(cell[3]) for cell in cells]
    np.testing.assert_allclose(hours, np.array(expected) / 3600, rtol=0.01)


def test_a_plan_needs_no_data(monkeypatch, capsys):
    monkeypatch.setattr(cost, "measure_step", lambda *_: 1.0)
    assert main(["plan", "--profile", "paper", "single_label"]) == 0
    assert "single_label" in capsys.readouterr().out
    assert main(["plan", "--profile", "paper", "nothing"]) == 1
    assert "known notebooks: " in capsys.readouterr().err
