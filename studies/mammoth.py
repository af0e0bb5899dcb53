"""Train Mammoth's own DER++ and ER-ACE on prslib's stream, beside prslib's.

Run ``python studies/mammoth.py --mammoth DIR``, ten minutes. DIR is a checkout of
https://github.com/aimagelab/mammoth, whose requirements are installed, and MNIST is in
``PRSLIB_DATA``. Both train the same network with the same optimiser on the same streams
of imbal-mnistseq, a memory of the same size beside it; each fills it and draws from it
by chance of its own. And in every step of prslib's runs Mammoth's `observe` tells its
loss of the same weights, new and replayed samples. It writes
figures/studies/mammoth.csv, a row for every method and seed: accuracies on the whole
test set, and how far the losses of a step were apart, at most. Mammoth's ER-ACE takes
the newest class and all with a higher number for those yet to come. Steps in which
these are others than in prslib are not compared.
"""

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from saving import save
from tqdm import tqdm

from prslib import RunConfig, load_dataset, run
from prslib.device import run_settings
from prslib.train import Trainer, make_network, spawn_seeds, stream

DATA, SEEDS = "imbal-mnistseq", range(20)
# of DER++: prslib's defaults, and the authors' for MNIST and 500 samples in memory
SETTINGS = [("DER++", 0.1, 0.5), ("DER++", 1.0, 0.5), ("ER-ACE", None, None)]


class SGD(torch.optim.SGD):
    """SGD with prslib's penalty on norms, and its clipping after that."""

    def __init__(self, parameters: Sequence[Tensor], settings: dict):
        super().__init__(parameters, lr=settings["learning_rate"], momentum=0.9)
        self.settings = settings

    def step(self) -> None:
        """Take a step; the penalty's gradient is 2 lambda w."""
        weights = [w for group in self.param_groups for w in group["params"]]
        for weight in weights:
            factor = 2 * self.settings["norm_penalty"]
            weight.grad.add_(weight.detach(), alpha=factor)
        nn.utils.clip_grad_value_(weights, self.settings["clip_value"])
        super().step()


class InOrder(nn.Module):
    """A network whose scores are in the order in which the classes come.

    Mammoth takes it that later classes have higher numbers.
    """

    def __init__(self, network: nn.Module, order: Tensor):
        super().__init__()
        self.network = network
        self.order = order

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (B, C)."""
        return self.network(inputs)[:, self.order]


class Theirs:
    """Mammoth's method, network and memory for a run of prslib."""

    def __init__(self, config: RunConfig):
        from models.derpp import Derpp
        from models.er_ace import ErACE

        settings = config.resolved
        self.config = config
        self.dataset = load_dataset(DATA)
        self.order = torch.tensor(settings["schedule"])
        network = make_network(config, self.dataset, spawn_seeds(config)[3])
        network = InOrder(network, self.order)
        kind = {"DER++": Derpp, "ER-ACE": ErACE}[config.method]
        facts = {"N_CLASSES": 10, "N_TASKS": 5, "N_CLASSES_PER_TASK": 2}
        facts = SimpleNamespace(**facts, SETTING="class-il")
        options = Namespace(
            buffer_size=settings["memory_size"],
            minibatch_size=settings["replay_batch_size"],
            lr=settings["learning_rate"],
            optimizer="sgd",
            optim_wd=0,
            optim_mom=0.9,
            optim_nesterov=False,
            label_perc=1,
            nowand=1,
            task_free=True,  # prslib tells no method where a task ends
            use_custom_classifier=False,  # but prslib's
            alpha=config.alpha,
            beta=config.beta,
        )
        self.model = kind(network, F.cross_entropy, options, None, facts)
        self.model.opt = SGD(list(network.parameters()), settings)
        self.is_ace = kind is ErACE

    def labels(self, one_hot: Tensor) -> Tensor:
        """Return class numbers (B,) in the order in which the classes come."""
        return one_hot[:, self.order].argmax(1)

    def accuracy(self) -> float:
        """Train on prslib's stream; return the share of test images that are right."""
        np.random.seed(self.config.seed)  # Mammoth's memory draws from it
        train, test = self.dataset.train, self.dataset.tests["full"]
        images = as_input(torch.tensor(train.inputs))
        labels = self.labels(torch.tensor(train.labels).int())
        for _, batches, _ in stream(self.config, train.task):
            for rows in batches:
                self.model.observe(images[rows], labels[rows], images[rows])
        with torch.no_grad():
            guesses = self.model.net(as_input(torch.tensor(test.inputs))).argmax(1)
        right = guesses == self.labels(torch.tensor(test.labels).int())
        return right.float().mean().item()

    def loss(
        self, trainer: Trainer, inputs: Tensor, targets: Tensor, slots: np.ndarray
    ) -> float:
        """Return Mammoth's loss of a step of prslib; the last rows are replayed."""
        self.model.net.network.load_state_dict(trainer.model.state_dict())
        labels = self.labels(targets)
        count = len(slots)
        new = len(labels) - count
        buffer = type(self.model.buffer)(max(count, 1))
        if count:
            buffer.examples, buffer.labels = inputs[new:].clone(), labels[new:].clone()
            buffer.num_seen_examples = count
        batches = 1 if self.is_ace else 2
        if count and not self.is_ace:
            logits = trainer.memory.read(slots, "logits")["logits"]
            buffer.logits = logits[:, self.order].clone()
        self.model.buffer = buffer
        shares = iter(np.array_split(np.arange(count), batches))
        self.model.args.minibatch_size = count // batches
        with patch("numpy.random.choice", lambda *_, **__: next(shares)):
            return self.model.observe(inputs[:new], labels[:new], inputs[:new])

    def looks_at_same_classes(self, targets: Tensor) -> bool:
        """Tell whether its ER-ACE looks at prslib's classes for new samples."""
        numbers = torch.arange(len(self.order))
        is_seen = torch.isin(numbers, self.model.seen_so_far)
        in_batch = torch.isin(numbers, self.labels(targets))
        theirs = in_batch | (numbers >= self.model.seen_so_far.max())
        return torch.equal(theirs, in_batch | ~is_seen)


def as_input(images: Tensor) -> Tensor:
    """Turn uint8 (B, H, W, channels) into float (B, channels, H, W) in [0, 1]."""
    return images.permute(0, 3, 1, 2).float() / 255


def compared_run(config: RunConfig) -> tuple[float, float, int]:
    """Train prslib's; return accuracy, largest gap of a step's loss, compared steps."""
    theirs = Theirs(config)
    usual_step, usual_losses = Trainer.descend, Trainer.combine_losses
    losses, gaps = [], []

    def combine_losses(trainer: Trainer, *arguments: object) -> Tensor:
        losses.append(usual_losses(trainer, *arguments))
        return losses[-1]

    def descend(
        trainer: Trainer, x: Tensor, y: Tensor, new: np.ndarray, slots: np.ndarray
    ) -> Tensor:
        their_loss = theirs.loss(trainer, x, y, slots)
        logits = usual_step(trainer, x, y, new, slots)
        if not theirs.is_ace or theirs.looks_at_same_classes(y[: len(new)]):
            gaps.append(abs(losses[-1].item() - their_loss))
        return logits

    steps = patch.object(Trainer, "descend", descend)
    with steps, patch.object(Trainer, "combine_losses", combine_losses):
        scores = run(config).scores
    end = scores.query("task == 'all' and metric == 'accuracy' and trained_tasks == 5")
    return end["value"].item(), max(gaps), len(gaps)


def compare(seeds: Sequence[int]) -> pd.DataFrame:
    """Return a row for every method and seed."""
    rows = []
    for method, alpha, beta in SETTINGS:
        strengths = {} if alpha is None else {"alpha": alpha, "beta": beta}
        for seed in tqdm(seeds, method):
            config = RunConfig(DATA, method, seed=seed, **strengths)
            with run_settings(torch.device("cpu")):
                theirs = Theirs(config).accuracy()
            ours, gap, steps = compared_run(config)
            row = {"method": method, "alpha": alpha, "beta": beta, "seed": seed}
            row |= {"mammoth": 100 * theirs, "prslib": 100 * ours}
            rows.append(row | {"largest_loss_gap": gap, "compared_steps": steps})
    return pd.DataFrame(rows)


def main() -> None:
    """Compare, print the means and write the table."""
    line = argparse.ArgumentParser(description=__doc__)
    line.add_argument("--mammoth", type=Path, required=True, help="its checkout")
    line.add_argument("--seeds", type=int, default=len(SEEDS), help="so many")
    options = line.parse_args()
    sys.path.insert(0, str(options.mammoth))
    table = compare(SEEDS[: options.seeds])
    grouped = table.groupby(["method", "alpha", "beta"], dropna=False, sort=False)
    print(grouped[["mammoth", "prslib"]].agg(["mean", "std"]).round(1))
    print(grouped["largest_loss_gap"].max())
    save(table.round({"mammoth": 2, "prslib": 2}), "mammoth")


if __name__ == "__main__":
    main()
