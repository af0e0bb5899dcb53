"""What samplers that look at the model get to see, computed when they ask for it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prslib import gradients
from prslib.learner import Learner
from prslib.memory import Memory
from prslib.residence import Images


def features(
    learner: Learner, images: Images, labels: Tensor, batch: np.ndarray, memory: Memory
) -> np.ndarray:
    """Return what the frozen part of the network makes of a batch (ExStream).

    Parameters
    ----------
    learner : Learner
        The network.
    images : Images
        The training images.
    labels : Tensor
        Their labels, on the learner's device.
    batch : ndarray of int64, (B,)
        Indices of the new samples.
    memory : Memory
        Not looked at.

    Returns
    -------
    ndarray of float32, (B, D)
        One flat vector a sample.
    """
    return learner.inputs(images, batch).flatten(1).cpu().numpy()


def gradient_products(
    learner: Learner, images: Images, labels: Tensor, batch: np.ndarray, memory: Memory
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that compares a batch's gradients with those of memory subsets (GSS).

    Parameters
    ----------
    learner, images, labels, batch
        As for `features`.
    memory : Memory
        Where the subsets' samples are, in the column "index".

    Returns
    -------
    callable
        Takes slots int64 (K, n); returns float64 (K + B, K + B): inner products of the gradients
        of the subsets' mean losses and of each new sample's loss, over all trained weights.
    """

    def products(subsets: np.ndarray) -> np.ndarray:
        known = memory.read(subsets.ravel())["index"]
        indices = np.concatenate([known, batch])
        targets = labels[torch.from_numpy(indices).to(labels.device)]
        sizes = [subsets.shape[1]] * len(subsets) + [1] * len(batch)
        inputs = learner.inputs(images, indices)
        table = gradients.gradient_products(learner.upper, learner.loss, inputs, targets, sizes)
        return table.cpu().numpy()

    return products


# by the name that a sampler's ``needs`` gives it
SUPPLIES: dict[str, Callable[..., Any]] = {
    "features": features,
    "gradient_products": gradient_products,
}
