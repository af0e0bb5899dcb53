"""Trainers outside of a run, and their batches."""

import torch

from prslib import load_dataset
from prslib.train import Trainer, stream


def make_trainer(config, device="cpu"):
    data = load_dataset(config.dataset)
    inputs = torch.as_tensor(data.train.inputs)
    return Trainer(config, data, inputs, torch.device(device))


def batches_of(config):
    """Return pairs of a batch of the stream and whether it is of the first epoch."""
    data = load_dataset(config.dataset, images=False)
    pairs = []
    for _, batches, is_new in stream(config, data.train.task):
        pairs += zip(batches, is_new, strict=True)
    return pairs


def train(config, steps):
    """Return a trainer after some steps of the stream."""
    trainer = make_trainer(config)
    for rows, is_first in batches_of(config)[:steps]:
        trainer.step(rows, is_first)
    return trainer
