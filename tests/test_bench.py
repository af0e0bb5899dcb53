"""The benchmarks say what they do and count right; nobody's speed is tested."""

import importlib
import sys

import pandas as pd
import pytest
import torch

from prslib.paths import project_root

BENCH = project_root() / "bench"
PROGRAMS = ["gss", "many", "replay_share", "samplers", "step"]
STUDIES = ["ewc_strength", "head"]
PARTS = {"floors"}  # no programs: what bench/step.py counts with


@pytest.fixture
def load(monkeypatch):
    """Import a benchmark by its name."""
    folders = [str(BENCH), str(project_root() / "studies")]
    monkeypatch.setattr(sys, "path", [*folders, *sys.path])
    return importlib.import_module


def test_every_benchmark_is_asked():
    assert {file.stem for file in BENCH.glob("*.py")} == {*PROGRAMS, *PARTS}


@pytest.mark.parametrize("name", [*PROGRAMS, *STUDIES])
def test_help_measures_nothing(name, load, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        load(name).main()
    assert capsys.readouterr().out.startswith(f"usage: {name}.py [-h]")
    assert not list(tmp_path.iterdir())


def test_a_step_of_resnet101_is_the_arithmetic_it_is_known_for(load):
    floors = load("floors")
    operations, _ = floors.work("resnet101", 256, 20, torch.bfloat16)
    assert operations / 1e12 == pytest.approx(1.22, abs=0.01)
    once, twice = (
        floors.work("convnet", 32, batch, torch.float32) for batch in (10, 20)
    )
    assert twice == (2 * once[0], pytest.approx(2 * once[1], rel=1e-2))


def test_traffic_is_every_tensor_once_and_views_are_free(load):
    values, weights = torch.ones(4, 8), torch.ones(8, 2)
    with load("floors").Traffic(4) as traffic:
        product = values @ weights  # reads 4x8, writes 4x2; weights are no activations
        product.t().t().detach().add_(product.view(4, 2))  # reads 4x2 twice, writes it
    assert traffic.total == 4 * (32 + 8 + 3 * 8)


def test_a_step_is_measured_on_a_cpu_as_well(load, tmp_path, monkeypatch, capsys):
    step, floors = load("step"), load("floors")
    monkeypatch.setenv("PRSLIB_FIGURES", str(tmp_path))
    monkeypatch.setattr(step, "WARM_UP", 0)
    monkeypatch.setattr(step, "sampler_times", lambda repetitions: [0.1] * repetitions)
    monkeypatch.setattr(floors, "rate", lambda function, amount, device: 1e9)
    sizes = {"--image-size": 16, "--images": 40, "--steps": 1, "--repetitions": 2}
    step.main(
        ["--device", "cpu", *(str(part) for size in sizes.items() for part in size)]
    )
    assert "convnet, 10 + 10 images of 16x16, CPU" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "bench" / "step_cpu.csv")
    assert (tmp_path / "bench" / "step_cpu.png").stat().st_size > 10_000
    ways = {str(way) for way in step.ON_CPU}
    whole = table[table["part"] == "whole"].set_index("way")["ms"]
    assert set(whole.index) == ways and (whole > 0).all()
    for _, rows in table[table["way"].isin(ways)].groupby("way"):
        assert set(rows["part"]) == {*step.PARTS, "whole"}
    assert set(table["way"]) - ways == {"floor fp32", "floor tf32", "floor bf16"}


def test_the_sampler_of_a_step_is_timed(load, monkeypatch):
    step = load("step")
    monkeypatch.setattr(step, "MEMORY", 20)
    assert len([ms for ms in step.sampler_times(repetitions=2, steps=3) if ms > 0]) == 2
