"""Replay on a long-tailed stream whose samples have several labels each.

Targets are rows of 0 and 1, and the criterion is ``BCEWithLogitsLoss``. The metric is not
accuracy, which is undefined for several labels. The storage policy is not one of
Avalanche's class-balanced buffers, because they interpret a target as one class number.
"""

import torch
from avalanche.benchmarks import (
    benchmark_from_datasets,
)
from avalanche.benchmarks.utils import (
    as_classification_dataset,
)
from avalanche.training.plugins import ReplayPlugin
from avalanche.training.storage_policy import (
    ReservoirSamplingBuffer,
)
from avalanche.training.supervised import Naive
from avalanche_buffer import PRSBuffer
from sklearn.metrics import average_precision_score

CLASSES = 8
MEM_SIZE = 60


def make_data(length, chance, centres):
    """Return targets with a probability per class, and inputs around their ``centres``."""
    targets = (torch.rand(length, CLASSES) < chance).float()
    targets = targets[targets.any(dim=1)]
    inputs = targets @ centres + 0.5 * torch.randn(len(targets), centres.shape[1])
    return inputs, targets


def make_experience(inputs, targets):
    """Return a dataset of Avalanche."""
    data = torch.utils.data.TensorDataset(inputs, targets)
    data.targets = list(targets)
    return as_classification_dataset(data)


def train(policy, experiences, test):
    """Train on the experiences one after another; return the mean average precision."""
    torch.manual_seed(0)
    model = torch.nn.Linear(16, CLASSES)
    strategy = Naive(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        criterion=torch.nn.BCEWithLogitsLoss(),
        train_mb_size=10,
        plugins=[ReplayPlugin(mem_size=MEM_SIZE, storage_policy=policy)],
        evaluator=None,
    )
    for experience in benchmark_from_datasets(train=experiences).train_stream:
        strategy.train(experience)
    inputs, targets = test
    with torch.no_grad():
        return average_precision_score(targets, model(inputs))


def main():
    """Compare two buffers; each experience has half of the classes."""
    torch.manual_seed(0)
    centres = torch.randn(CLASSES, 16)
    tail = 0.6 / 2.0 ** torch.arange(CLASSES // 2)  # from frequent to rare classes
    none = torch.zeros(CLASSES // 2)
    halves = [torch.cat([tail, none]), torch.cat([none, tail])]
    tasks = [make_data(1000, half, centres) for half in halves]
    experiences = [make_experience(*task) for task in tasks]
    test = make_data(2000, torch.full((CLASSES,), 0.3), centres)
    stream = sum(targets.sum(dim=0) for _, targets in tasks)
    print("stream", stream.int().tolist())
    for policy in (ReservoirSamplingBuffer(MEM_SIZE), PRSBuffer(MEM_SIZE, seed=0)):
        score = train(policy, experiences, test)
        stored = sum(policy.buffer[k][1] for k in range(MEM_SIZE))
        name = type(policy).__name__
        print(f"{name}: mAP {100 * score:.1f}, memory {stored.int().tolist()}")


if __name__ == "__main__":
    main()
