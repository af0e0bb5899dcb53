"""Tests for Avalanche, in the style of its ``tests/training/test_replay.py``."""

import unittest

import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.benchmarks.utils.flat_data import _flatdata_depth
from avalanche.training.plugins import ReplayPlugin
from avalanche.training.supervised import Naive
from avalanche_buffer import PRSBuffer
from torch.nn import BCEWithLogitsLoss, Linear
from torch.optim import SGD


def make_data(several, length=600):
    """Return a long-tailed dataset; if `several`, every second sample also has class 0."""
    torch.manual_seed(0)
    classes = torch.multinomial(torch.tensor([0.8, 0.15, 0.05]), length, True)
    targets = classes
    if several:
        targets = torch.nn.functional.one_hot(classes, 3).float()
        targets[::2, 0] = 1
    data = torch.utils.data.TensorDataset(
        torch.arange(length)[:, None].float(), targets
    )
    data.targets = list(targets)
    return as_classification_dataset(data)


class PRSBufferTest(unittest.TestCase):
    def test_balance_of_classes(self):
        buffer = PRSBuffer(max_size=30, seed=0)
        buffer.update_from_dataset(make_data(several=False))
        stored = torch.tensor([int(target) for target in buffer.buffer.targets])
        for count in torch.bincount(stored):
            self.assertAlmostEqual(count.item(), 10, delta=2)

    def test_balance_of_labels(self):
        buffer = PRSBuffer(max_size=30, seed=0)
        buffer.update_from_dataset(make_data(several=True))
        counts = torch.stack([*buffer.buffer.targets]).sum(dim=0)
        self.assertLess(counts.max() - counts.min(), 4)

    def test_samples_keep_their_targets(self):
        data = make_data(several=True)
        buffer = PRSBuffer(max_size=30, seed=0)
        for rows in (range(300), range(300, 600)):
            buffer.update_from_dataset(data.subset(rows))
        self.assertEqual(len(buffer.buffer), 30)
        for slot, (x, y, *_) in enumerate(buffer.buffer):
            self.assertTrue(torch.equal(y, data[int(x)][1]))
            self.assertEqual(buffer.select.stored[slot].tolist(), y.bool().tolist())

    def test_replay_of_several_labels(self):
        data = make_data(several=True)
        buffer = PRSBuffer(max_size=25, seed=0)
        model = Linear(1, 3)
        strategy = Naive(
            model=model,
            optimizer=SGD(model.parameters(), lr=0.001),
            criterion=BCEWithLogitsLoss(),
            train_mb_size=50,
            plugins=[ReplayPlugin(mem_size=25, storage_policy=buffer)],
            evaluator=None,
        )
        halves = [data.subset(range(300)), data.subset(range(300, 600))]
        for experience in benchmark_from_datasets(train=halves).train_stream:
            strategy.train(experience)
            self.assertEqual(len(buffer.buffer), 25)
        self.assertEqual(buffer.num_seen, 600)

    def test_flattening(self):
        data = make_data(several=False)
        buffer = PRSBuffer(max_size=30, seed=0)
        depths = []
        for _ in range(4):
            buffer.update_from_dataset(data)
            depths.append(_flatdata_depth(buffer.buffer._flat_data))
        self.assertEqual(depths[1], depths[-1])

    def test_another_size_is_refused(self):
        with self.assertRaises(ValueError):
            PRSBuffer(max_size=30).resize(None, 10)


if __name__ == "__main__":
    unittest.main()
