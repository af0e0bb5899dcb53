"""What the step's benchmark counts, and that it runs; nobody's speed is tested."""

import importlib
from pathlib import Path

import pandas as pd
import pytest
import torch

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("step"), importlib.import_module("floors")


def test_a_step_of_resnet101_is_the_arithmetic_it_is_known_for(bench):
    _, floors = bench
    operations, _ = floors.work("resnet101", 256, 20, torch.bfloat16)
    assert operations / 1e12 == pytest.approx(1.22, abs=0.01)
    for name, times in {"attention_consistency": 4.5, "rnn_attention": 1.0}.items():
        more, _ = floors.work(f"resnet101_{name}", 256, 20, torch.bfloat16)
        assert more / operations == pytest.approx(times, abs=0.05)
    once, twice = (floors.work("convnet", 32, batch, torch.float32) for batch in (10, 20))
    assert twice == (2 * once[0], pytest.approx(2 * once[1], rel=1e-2))


def test_traffic_is_every_tensor_once_and_views_are_free(bench):
    _, floors = bench
    values, weights = torch.ones(4, 8), torch.ones(8, 2)
    with floors.Traffic(4) as traffic:
        product = values @ weights  # reads 4x8, writes 4x2; weights are no activations
        product.t().t().detach().add_(product.view(4, 2))  # reads 4x2 twice, writes it
    assert traffic.total == 4 * (32 + 8 + 3 * 8)


def test_the_benchmark_runs_on_a_cpu_and_says_so(bench, capsys, own_folders):
    step, _ = bench
    step.main(["--device", "cpu", "--repetitions", "2", "--steps", "2", "--images", "40"])
    said = capsys.readouterr().out
    assert "convnet, 10 + 10 images of 32x32, CPU" in said
    folder = own_folders / "figures" / "bench"
    table = pd.read_csv(folder / "step_cpu.csv")
    assert (folder / "step_cpu.png").stat().st_size > 10_000
    ways = {str(way) for way in step.ON_CPU}
    whole = table[table["part"] == "whole"].set_index("way")["ms"]
    assert set(whole.index) == ways and (whole > 0).all()
    for _, rows in table[table["way"].isin(ways)].groupby("way"):
        assert set(rows["part"]) == {*step.PARTS, "whole"}
    assert set(table["way"]) - ways == {"floor fp32", "floor tf32", "floor bf16"}


@pytest.mark.parametrize(
    ("card", "name"),
    [("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA GeForce RTX 4090", "nvidia_geforce_rtx_4090")],
)
def test_files_are_named_after_the_card(bench, card, name, monkeypatch):
    step, _ = bench
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: card)
    assert step.device_name(torch.device("cuda")) == name
