"""The study that trains the embedded weights: the same bytes again, in few bits."""

import pytest
import torch

from prslib.models import weights
from prslib.models.networks import make_model


@pytest.mark.usefixtures("one_thread")
def test_pretraining_gives_the_same_bytes_and_networks_begin_with_them(
    program, monkeypatch, tmp_path
):
    study = program("pretrain")
    first, second = (study.pretrain("digits-0", images=100) for _ in range(2))
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    name = "stages.0.0.weight"
    assert not torch.equal(study.pretrain("digits-1", images=100)[name], first[name])
    packed = study.pack(first)
    small, scale = packed[name]
    assert small.dtype == torch.int8 and scale.shape == (16, 1, 1, 1)
    assert ((small * scale - first[name]).abs() <= 0.501 * scale).all()
    file = tmp_path / "digits.pth"
    torch.save(packed, file)
    monkeypatch.setitem(weights.EMBEDDED, "digits-0", file)
    network = make_model("convnet", (32, 32, 3), 70, seed=0, weights="digits")
    assert torch.equal(network.stages[0][0].weight, small * scale)
