"""``python -m prslib plan``: which runs are missing, and how long they take."""

import numpy as np
import pytest
from torch.optim.optimizer import register_optimizer_step_post_hook

from prslib.cli import main
from prslib.datasets import DATASETS, load_dataset
from prslib.experiments import cost
from prslib.experiments.cost import blanks_for_missing, measure_step, plan, work_of
from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.training.config import RunConfig, configs
from prslib.training.run import run

MLP = {"dataset": "imbal-digits-tiny"}


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("PRSLIB_DATA", raising=False)


@pytest.mark.parametrize(
    ("name", "images", "classes", "tasks"),
    [
        ("cocoseq", 35072, 70, 4),
        ("cocoseq-features", 35072, 70, 4),
        ("nuswideseq", 48724, 49, 6),
        ("imbal-mnistseq", 11543, 10, 10),
        ("imbal-svhnseq", 14181, 10, 10),
    ],
)
def test_blank_data_sets_have_the_published_sizes(name, images, classes, tasks):
    blank = cost.blank_dataset(name)
    assert (len(blank.train), blank.num_classes, blank.num_tasks) == (
        images,
        classes,
        tasks,
    )
    assert tasks == len(DATASETS[name].recipe.schedule)


def test_blanks_stand_in_within_the_context_only():
    config = RunConfig(dataset="cocoseq", method="CRS")
    with blanks_for_missing() as missing:
        assert missing["cocoseq"] == cost.NOTHING
        assert "digits70seq" not in missing
        assert config.hash
        assert work_of(config).steps == pytest.approx(3507, abs=4)
    for ask in (
        lambda: config.hash,
        lambda: load_dataset("imbal-mnistseq", images=False),
    ):
        with pytest.raises(FileNotFoundError):
            ask()


@pytest.mark.parametrize("method", ["CRS", "GSS", "Multitask"])
def test_work_is_what_a_run_does(method):
    config = RunConfig(**MLP, method=method, batch_size=30)
    steps = []
    hook = register_optimizer_step_post_hook(lambda *_: steps.append(1))
    run(config)
    hook.remove()
    assert work_of(config).steps == len(steps)


def test_looks_at_the_memory_count_as_steps():
    plain, watched = (RunConfig(**MLP, method="CRS", variance_points=n) for n in (0, 5))
    assert (
        work_of(watched).steps - work_of(plain).steps == 5 * 2
    )  # 30 samples, 20 at once


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
    monkeypatch.setattr(cost, "AIM", 0.0)
    entries = dict(DATASETS)
    with blanks_for_missing():
        assert 0 < measure_step(RunConfig(**fields)) < 30
    assert entries == DATASETS


def test_runs_of_one_kind_share_a_pace():
    seeds = configs(**MLP, method="PRS", seed=[0, 1], rho=[0.0, 1.0])
    assert len({cost.kind_of(config) for config in seeds}) == 1
    alike = [
        ("PRS", "CRS", "OCDM"),
        ("Finetune", "Multitask"),
        ("GSS",),
        ("ExStream",),
        ("EWC",),
    ]
    kinds = [
        {cost.kind_of(RunConfig(**MLP, method=method)) for method in some}
        for some in alike
    ]
    assert [len(kind) for kind in kinds] == [1] * 5
    assert len(set.union(*kinds)) == 5


@pytest.fixture
def one_second(monkeypatch):
    """A step takes a second, scoring no time."""
    monkeypatch.setattr(cost, "measure_step", lambda *_: 1.0)
    monkeypatch.setattr(cost, "images_in_step", lambda *_: np.inf)


def test_a_plan_counts_what_is_missing_once(tmp_path, monkeypatch, capsys, one_second):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    wanted = {
        "main_results": configs(**MLP, method=["CRS", "PRS"], batch_size=30),
        "rho_sweep": configs(**MLP, method="PRS", rho=[0.0, 1.0], batch_size=30),
    }
    monkeypatch.setattr(
        "prslib.report.topics.runs_of", lambda _profile, name: wanted[name]
    )
    steps = work_of(wanted["rho_sweep"][0]).steps
    run_all(wanted["main_results"][:1], workers=1)
    assert main(["plan", "--profile", "smoke", "main_results", "rho_sweep"]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split()[-4:] for line in lines[1:4]]
    assert [cell[:2] for cell in cells] == [["2", "1"], ["2", "2"], ["3", "2"]]
    assert [int(cell[2].replace(",", "")) for cell in cells] == [
        steps,
        2 * steps,
        2 * steps,
    ]
    hours = [float(cell[3]) for cell in cells]
    np.testing.assert_allclose(hours, np.array([1, 2, 2]) * steps / 3600, rtol=0.01)


def test_a_plan_counts_the_hours_of_a_training_once(tmp_path, one_second):
    fields = MLP | {"method": "CRS", "batch_size": 30}
    plain, watched, other = (RunConfig(**fields, variance_points=n) for n in (0, 5, 2))
    wanted = {
        "main_results": ([plain], "cpu"),
        "gradient_variance": ([watched, other], "cpu"),
    }
    table, _ = plan(list(wanted), wanted.get, Store(tmp_path))
    assert table["missing"].tolist() == [1, 2, 3]
    steps = work_of(plain).steps, work_of(watched).steps, work_of(watched).steps
    assert table["steps"].tolist() == list(steps)
    np.testing.assert_allclose(table["hours"], np.array(steps) / 3600)


def test_a_plan_says_what_data_are_missing(tmp_path, monkeypatch, capsys, one_second):
    monkeypatch.setenv("PRSLIB_CACHE", str(tmp_path))
    assert main(["plan", "--profile", "paper", "single_label"]) == 0
    output = capsys.readouterr().out
    assert (
        "imbal-svhnseq: labels and images missing; all its runs count as missing"
        in output
    )
    assert "cocoseq" not in output
    assert main(["plan", "--profile", "paper", "nothing"]) == 1
    assert "known notebooks: " in capsys.readouterr().err


def test_hours_side_by_side_are_each_devices_own(tmp_path, monkeypatch, one_second):
    fields = MLP | {"method": "CRS", "batch_size": 30}
    on_cpu, on_gpu = (
        configs(**fields, seed=list(range(*ends))) for ends in ((0, 8), (8, 40))
    )
    wanted = {"rho_sweep": (on_cpu, "cpu"), "main_results": (on_gpu, "cuda")}
    monkeypatch.setattr(cost.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("prslib.experiments.pool.cpu_count", lambda: 16)
    table, (said, *_) = plan(list(wanted), wanted.get, Store(tmp_path))
    assert (
        "with 8 side by side on the CPU and then 8 side by side on the GPU, in all: "
        in said
    )
    hours = table["hours"][0] / 8 + table["hours"][1] / 8
    assert said.endswith(f" {cost.in_hours(hours)}.")


def test_a_notebook_that_cannot_say_what_it_wants_leaves_the_others(
    tmp_path, one_second
):
    def wanted(name):
        if name == "rho_sweep":
            raise ZeroDivisionError("what a cell does")
        return configs(**MLP, method="CRS"), "cpu"

    table, remarks = plan(["rho_sweep", "main_results"], wanted, Store(tmp_path))
    assert table["missing"].tolist() == [1, 1]
    assert (
        "rho_sweep cannot say what it wants: ZeroDivisionError: what a cell does"
        in remarks
    )


def test_a_step_that_cannot_be_measured_is_unknown_and_said(tmp_path, monkeypatch):
    def break_down(config, device):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(cost, "measure_step", break_down)
    runs = configs(**MLP, seed=[0, 1]), "cpu"
    text = cost.as_text(*plan(["main_results"], lambda name: runs, Store(tmp_path)))
    assert text.count("PRS, mlp on (28, 28, 1): not measured, CUDA out of memory") == 1
    assert "in all: unknown." in text and "nan" not in text.lower()
