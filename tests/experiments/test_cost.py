"""``python -m prslib plan``: which runs are missing, and how long they take."""

import numpy as np
import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from prslib.cli import main
from prslib.datasets.features import MINI
from prslib.datasets.prepared import Selection
from prslib.experiments import cost
from prslib.experiments.cost import measure_step
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig
from prslib.training.grids import configs

MLP = {"dataset": "imbal-digits-tiny", "batch_size": 30}


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    "config",
    [
        *configs(**MLP, method=["EWC", "ExStream", "Finetune", "GSS"]),
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
    assert main(["plan", "--profile", "smoke", *runs]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split()[-4:] for line in lines[1:4]]
    assert [cell[:2] for cell in cells] == [["2", "1"], ["3", "2"], ["4", "3"]]
    # of PRS; of CRS, watched twice; of both
    expected = [len(steps), len(steps), 2 * len(steps)]
    assert [int(cell[2]) for cell in cells] == expected
    hours = [float(cell[3]) for cell in cells]
    np.testing.assert_allclose(hours, np.array(expected) / 3600, rtol=0.01)


def test_a_plan_names_the_notebooks_whose_labels_are_missing(monkeypatch, capsys):
    monkeypatch.setattr(cost, "measure_step", lambda *_: 1.0)
    assert main(["plan", "--profile", "paper", "main_results", "deviations"]) == 1
    said = capsys.readouterr()
    assert "deviations" in said.out
    assert "left out: main_results: expected the environment variable" in said.err
