"""What a GPU computes: the CPU's results within tolerance, captured as eager, without waiting."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from prslib.datasets import load_dataset
from prslib.experiments.stacked import run_stacked
from prslib.training import device as device_module
from prslib.training.config import PRECISIONS, RunConfig
from prslib.training.device import WARM_UP, Captured, Graphs, HostImages, Precision, place
from prslib.training.methods import METHODS
from prslib.training.replay import plan
from prslib.training.run import conditions, make_learner, run

TINY = "digits70tiny"
GPU = torch.device("cuda")
pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(TINY)


@pytest.fixture(scope="module")
def data(dataset):
    """Images, labels and the batches of a second part, for `Learner.fit` on the GPU."""
    images = place(dataset.train.images, "cuda")
    labels = torch.from_numpy(dataset.train.labels).float().cuda()
    return images, labels, plan(RunConfig(dataset=TINY), dataset)[0][1].batches


def trained(dataset, config, device, captured=True, images=None):
    """Train on the first part of a run's plan and return the learner."""
    learner = make_learner(config, dataset, device)
    if not captured:
        learner._step = learner.step
    images = place(dataset.train.images, device) if images is None else images
    labels = torch.from_numpy(dataset.train.labels).float().to(device)
    parts, _ = plan(config, dataset)
    with Precision(config.resolved["precision"]).in_force():
        learner.fit(images, labels, parts[0].batches[:12])
    return learner


def distance(left, right, begun=None):
    """Return the largest relative distance of two learners' weight matrices.

    Biases in front of a batch norm are left out: their gradient is rounding alone, which Adam
    brings to the size of a step. So are matrices that were zero in a learner that has just begun:
    what they are is the steps alone.
    """
    pairs = zip(left.parameters, right.parameters, (begun or right).parameters, strict=True)
    pairs = [(p.detach().cpu(), q.detach().cpu()) for p, q, r in pairs if p.dim() > 1 and r.any()]
    return max(((p - q).norm() / q.norm()).item() for p, q in pairs)


# what a relative change of the first weights by 1e-6 grows to in these steps, and some room; the
# steps themselves move the weights by a tenth and more
GROWN = {"fp32": 5e-3, "tf32": 2e-2, "bf16": 8e-2}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": TINY},  # Adam
        {"dataset": "imbal-digits"},  # SGD, with the penalty on norms
        {"dataset": TINY, "model": "convnet_attention_consistency"},
        {"dataset": TINY, "model": "convnet_rnn_attention"},
    ],
    ids=lambda fields: "-".join(fields.values()),
)
def test_a_captured_step_is_the_eager_one(precision, fields):
    # with learned weights the regions of RNN-Attention depend on the last digits: 1e-6 grows to 0.2
    config = RunConfig(precision=precision, weights="none", **fields)
    dataset = load_dataset(config.dataset)
    eager = trained(dataset, config, "cuda", captured=False)
    captured = trained(dataset, config, "cuda")
    assert captured._step.replays and captured._step.recordable
    begun = make_learner(config, dataset)
    assert distance(captured, eager, begun) < GROWN[precision]


def test_a_captured_learner_goes_on_from_a_saved_state(dataset, data):
    images, labels, batches = data
    learner = trained(dataset, RunConfig(dataset=TINY), "cuda")
    saved = copy.deepcopy(learner.state_dict())
    learner.fit(images, labels, batches[:8])
    straight = [weight.detach().clone() for weight in learner.parameters]
    learner.load_state_dict(saved)  # puts other tensors in place of the optimiser's
    learner.fit(images, labels, batches[:8])
    for weight, expected in zip(learner.parameters, straight, strict=True):
        if weight.dim() > 1:
            assert (weight - expected).norm() < GROWN["fp32"] * expected.norm()


def test_a_learner_on_the_gpu_is_the_one_on_the_cpu(dataset):
    config = RunConfig(dataset=TINY)
    cpu, gpu = (trained(dataset, config, device) for device in ("cpu", "cuda"))
    assert distance(gpu, cpu) < GROWN["fp32"]
    with Precision("fp32").in_force():
        scores = [
            learner.probabilities(place(dataset.train.images[:100], device))
            for learner, device in ((cpu, "cpu"), (gpu, "cuda"))
        ]
    np.testing.assert_allclose(*scores, atol=5e-2)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_on_the_gpu_scores_as_on_the_cpu(method):
    config = RunConfig(dataset=TINY, method=method, batch_size=30)
    cpu, gpu = run(config), run(config, "cuda")
    if not METHODS[method].looks_at_model:
        np.testing.assert_array_equal(cpu.memory_labels, gpu.memory_labels)
    chosen = [
        s[(s["metric"] == "mAP") & (s["group"] == "overall")] for s in (cpu.scores, gpu.scores)
    ]
    values = [frame["value"].to_numpy() for frame in chosen]
    assert np.abs(values[0] - values[1]).mean() < 0.05


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_steps_of_a_known_plan_never_wait_for_the_gpu(dataset, data):
    learner = trained(dataset, RunConfig(dataset=TINY), "cuda")
    assert not isinstance(data[0], HostImages)
    torch.cuda.set_sync_debug_mode("error")
    try:
        learner.fit(*data)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_images_on_the_host_train_as_those_on_the_gpu(dataset, monkeypatch):
    config = RunConfig(dataset=TINY)
    resident = trained(dataset, config, "cuda")
    monkeypatch.setattr(device_module, "fits", lambda size, device: False)
    images = place(dataset.train.images, "cuda")
    assert isinstance(images, HostImages)
    assert distance(trained(dataset, config, "cuda", images=images), resident) < GROWN["fp32"]
    batches = plan(config, dataset)[0][0].batches
    for (pixels, rows), batch in zip(images.feed(batches), batches, strict=True):
        assert rows.tolist() == batch.tolist()
        assert torch.equal(pixels.cpu(), images[torch.from_numpy(batch)].cpu())


def test_a_function_that_waits_is_found_out_before_it_is_recorded():
    total = torch.zeros(1, device=GPU)
    captured = Captured(lambda value: total.add_(value.sum().item()), Graphs(GPU))
    with pytest.warns(UserWarning, match="waits for the device"):
        for _ in range(WARM_UP + 2):
            captured(torch.ones(3, device=GPU))
    assert total.item() == 3 * (WARM_UP + 2)
    assert not captured.replays


def test_odd_shapes_between_replays_see_the_same_tensors():
    total = torch.zeros(1, device=GPU)
    captured = Captured(lambda value: total.add_(value.sum()), Graphs(GPU))
    expected = 0
    for step in range(12):
        value = torch.full((5 if step % 4 == 3 else 3,), float(step), device=GPU)
        expected += value.sum().item()
        captured(value)
    assert total.item() == expected
    assert list(captured.replays) == [(torch.Size([3]),)]  # the odd one came too rarely


def test_runs_one_after_another_leave_the_gpu_as_they_found_it():
    config, held = RunConfig(dataset=TINY), []
    for seed in range(4):
        run(replace(config, seed=seed), "cuda")
        with conditions(config):
            held.append(torch.cuda.memory_allocated())
    assert max(held) - min(held) < 2**20


def test_stacked_runs_on_the_gpu_score_as_on_the_cpu():
    stack = [RunConfig(dataset="imbal-digits-tiny", method="CRS", seed=seed) for seed in range(3)]
    for cpu, gpu in zip(run_stacked(stack), run_stacked(stack, "cuda"), strict=True):
        np.testing.assert_array_equal(cpu.memory_labels, gpu.memory_labels)
        difference = cpu.scores["value"].to_numpy() - gpu.scores["value"].to_numpy()
        assert np.nanmean(np.abs(difference)) < 0.05
