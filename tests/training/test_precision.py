import numpy as np
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.training import config
from prslib.training import learner as learner_module
from prslib.training.config import RunConfig
from prslib.training.device import PRECISIONS
from prslib.training.run import make_learner, run

TINY = "digits70tiny"
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


def after(dataset, precision, steps=5, **fields):
    learner = make_learner(RunConfig(dataset=TINY, precision=precision, **fields), dataset)
    images = torch.from_numpy(dataset.train.images)
    labels = torch.from_numpy(dataset.train.labels).float()
    learner.fit(images, labels, np.arange(20 * steps).reshape(steps, 20))
    return learner, images


def test_precision_is_checked_and_part_of_what_a_run_is():
    assert tuple(PRECISIONS) == config.PRECISIONS
    with pytest.raises(ValueError, match="unknown precision 'fp16'; known precisions: bf16, fp32"):
        RunConfig(precision="fp16")
    made = {name: RunConfig(dataset=TINY, precision=name) for name in PRECISIONS}
    assert len({config.hash for config in made.values()}) == len(PRECISIONS)
    assert made["bf16"].identity["precision"] == "bf16"
    # a run in float32 keeps the name it had before there was a choice
    assert made["fp32"].hash == RunConfig(dataset=TINY).hash
    assert "precision" not in made["fp32"].identity
    assert RunConfig(dataset="cocoseq").resolved["precision"] == "bf16"


def test_float32_products_are_set_for_a_run_and_set_back(monkeypatch):
    knobs = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    before = [knob.fp32_precision for knob in knobs]
    for name, products in {"fp32": "ieee", "tf32": "tf32", "bf16": "tf32"}.items():
        monkeypatch.setattr(
            "prslib.training.run._run", lambda *_: [[knob.fp32_precision for knob in knobs]]
        )
        assert run(RunConfig(dataset=TINY, precision=name)) == [products] * 3
    with pytest.raises(KeyError), PRECISIONS["tf32"].in_force():
        raise KeyError
    assert [knob.fp32_precision for knob in knobs] == before


@pytest.mark.parametrize("method", ["PRS", "EWC"])
def test_bfloat16_stays_near_float32_with_weights_in_float32(dataset, method):
    single, images = after(dataset, "fp32", method=method)
    half, _ = after(dataset, "bf16", method=method)
    assert all(weight.dtype == torch.float32 for weight in half.parameters)
    four = [weight for weight in half.parameters if weight.dim() == 4]
    assert all(weight.is_contiguous(memory_format=torch.channels_last) for weight in four)
    states = half.optimizer.state.values()
    assert {value.dtype for state in states for value in state.values()} == {torch.float32}
    scores = [learner.probabilities(images[:50]) for learner in (single, half)]
    assert scores[1].dtype == np.float32
    assert np.isfinite(scores[1]).all()
    assert not np.array_equal(*scores)
    np.testing.assert_allclose(*scores, atol=0.06)  # the largest of 3500; they reach 0.9
    assert np.abs(scores[0] - scores[1]).mean() < 0.005


def test_a_forward_pass_in_bfloat16_is_one(dataset):
    half, images = after(dataset, "bf16", steps=1)
    kinds = set()
    for layer in half.model.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(lambda _m, _i, output: kinds.add(output.dtype))
    half.fit(images, torch.ones(len(images), 70), [np.arange(20)])
    assert kinds == {torch.bfloat16}
    kinds.clear()
    half.probabilities(images[:5])
    assert kinds == {torch.bfloat16}


def test_tf32_is_float32_on_a_cpu(dataset):
    learners = [after(dataset, name)[0] for name in ("fp32", "tf32")]
    for left, right in zip(*(learner.parameters for learner in learners), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-4)


def test_a_whole_run_in_bfloat16_scores_as_one_in_float32():
    fields = {"dataset": TINY, "method": "CRS", "learning_rate": 0.005, "batch_size": 20}
    values = []
    for precision in ("fp32", "bf16"):
        scores = run(RunConfig(precision=precision, **fields)).scores
        chosen = scores[(scores["task"] == "seen") & (scores["group"] == "overall")]
        values.append(chosen.set_index(["trained_tasks", "metric"])["value"])
    assert np.isfinite(values[1]).all()
    assert (values[0] - values[1]).abs().xs("mAP", level="metric").max() < 0.06


def test_frozen_stages_hand_on_float32_whatever_they_compute_in(dataset):
    half, images = after(dataset, "bf16", method="ExStream", steps=1)
    inputs = half.inputs(images, np.arange(3))
    assert inputs.dtype == torch.float32
    single, _ = after(dataset, "fp32", method="ExStream", steps=1)
    exact = single.inputs(images, np.arange(3))
    assert not torch.equal(inputs, exact)
    torch.testing.assert_close(inputs, exact, rtol=0.02, atol=0.02)


def test_evaluation_takes_large_batches_but_not_too_many_pixels(dataset, monkeypatch):
    learner, images = after(dataset, "fp32", steps=1)
    whole = learner.probabilities(images[:40])
    small = learner_module._in_batches(np.arange(600), (32, 32))
    assert [len(part) for part in small] == [256, 256, 88]
    assert len(learner_module._in_batches(np.arange(600), (512, 512))[0]) == 64
    assert len(learner_module._in_batches(np.arange(600), (9999, 9999))[0]) == 1
    sizes = []
    learner.model.register_forward_hook(lambda _m, i, _o: sizes.append(len(i[0])))
    monkeypatch.setattr(learner_module, "EVALUATION_PIXELS", 32 * 32 * 15)
    np.testing.assert_allclose(learner.probabilities(images[:40]), whole, atol=1e-6)
    assert sizes == [15, 15, 10]
    chosen = learner.probabilities(images, np.array([7, 3]))
    np.testing.assert_allclose(chosen, whole[[7, 3]], atol=1e-6)
