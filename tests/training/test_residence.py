"""Where images live changes nothing that a network gets."""

import numpy as np
import pandas as pd
import pytest
import torch

from prslib.experiments.store import Store
from prslib.experiments.sweep import run_all
from prslib.training import device as residence
from prslib.training.config import RunConfig
from prslib.training.device import DEPTH, Resident, Staged, on_device, place
from prslib.training.run import run

PLAN = [np.arange(4), *np.random.default_rng(0).integers(30, size=(6, 9)), np.array([29])]


@pytest.fixture
def images():
    rng = np.random.default_rng(1)
    return torch.from_numpy(rng.integers(256, size=(30, 4, 5, 3), dtype=np.uint8))


class LateLane:
    """As a GPU's stream does at worst: copies as late, and overwrites as early, as it may."""

    def __init__(self):
        self.sent = self.arrivals = self.slots = 0

    def slot(self, shape):
        self.slots += 1
        buffers = {name: torch.zeros(shape, dtype=torch.uint8) for name in ("host", "there")}
        return buffers | {"length": None, "read": True}

    def host(self, slot):
        assert slot["length"] is None, "the last copy has not left the buffer"
        slot["host"].fill_(7)
        return slot["host"]

    def send(self, slot, length):
        assert slot["read"], "the buffer on the device is still being read"
        slot["length"], slot["read"] = length, False
        self.sent += 1

    def arrived(self, slot):
        length, slot["length"] = slot["length"], None
        slot["there"].fill_(9)[:length] = slot["host"][:length]
        self.arrivals += 1
        return slot["there"]

    def release(self, slot):
        slot["read"] = True
        slot["there"].fill_(8)


@pytest.mark.parametrize("kind", ["resident", "staged", "late"])
def test_every_batch_of_a_plan_arrives_whole_and_in_order(images, kind):
    cpu = torch.device("cpu")
    made = {
        "resident": lambda: Resident(images),
        "staged": lambda: Staged(images, cpu),
        "late": lambda: Staged(images, cpu, LateLane()),
    }[kind]()
    assert (len(made), made.shape) == (30, (30, 4, 5, 3))
    got = [(pixels.clone(), rows.clone()) for pixels, rows in made.feed(PLAN)]
    assert len(got) == len(PLAN)
    for (pixels, rows), batch in zip(got, PLAN, strict=True):
        assert rows.tolist() == batch.tolist()
        assert torch.equal(pixels, images[torch.from_numpy(batch)])
    assert list(made.feed([])) == []
    assert torch.equal(made[torch.tensor([3, 1])], images[[3, 1]])


def test_batches_are_under_way_while_one_is_trained_on(images):
    lane = LateLane()
    for step, _ in enumerate(Staged(images, torch.device("cpu"), lane).feed(PLAN)):
        assert lane.arrivals == step + 1
        assert lane.sent == min(step + 1 + DEPTH, len(PLAN))
    assert lane.slots == DEPTH + 1  # however long the plan


def test_a_plan_is_handed_over_as_one_tensor():
    views = on_device(PLAN, torch.device("cpu"))
    assert len({view.untyped_storage().data_ptr() for view in views}) == 1
    assert [view.tolist() for view in views] == [batch.tolist() for batch in PLAN]
    assert len(on_device(np.arange(6).reshape(2, 3), torch.device("cpu"))) == 2


def test_images_stay_where_they_are_on_a_cpu_and_go_where_they_fit(monkeypatch):
    pixels = np.zeros((2, 4, 4, 1), np.uint8)
    placed = place(pixels, "cpu")
    pixels[1] = 5
    assert placed[torch.tensor([1])].max() == 5  # no copy was made
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 4000))
    gpu = torch.device("cuda")
    assert residence.fits(500, gpu)
    assert not residence.fits(501, gpu)


def test_images_stay_on_the_host_when_another_run_has_taken_their_place(images, monkeypatch):
    def full(_images):
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(residence, "Resident", full)
    placed = place(images, "cpu")
    assert isinstance(placed, Staged)
    assert torch.equal(placed[torch.tensor([2])], images[[2]])


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "meta", None])
def test_a_device_that_is_not_there_is_refused_before_work_starts(device, tmp_path):
    config = RunConfig(dataset="digits49tiny")
    message = f"unknown device '{device}'; devices of this machine: cpu"
    with pytest.raises(ValueError, match=message):
        run(config, device)
    with pytest.raises(ValueError, match=message):
        run_all([config], Store(tmp_path), device=device)


@pytest.mark.parametrize("method", ["CRS", "ExStream", "Multitask"])
def test_a_run_gives_the_same_bytes_wherever_its_images_live(method, monkeypatch):
    config = RunConfig(dataset="digits49tiny", method=method, batch_size=15)
    resident = run(config).scores
    fed = []
    feed = Staged.feed
    monkeypatch.setattr(residence, "fits", lambda size, device: False)
    monkeypatch.setattr(Staged, "feed", lambda self, plan: fed.append(1) or feed(self, plan))
    pd.testing.assert_frame_equal(resident, run(config).scores, check_exact=True)
    assert fed
