"""Train the small network before any stream, on `prslib.datasets.pretraining`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from prslib.datasets.pretraining import draw_scenes
from prslib.learner import Learner
from prslib.models.build import make_model
from prslib.models.weights import EMBEDDED, NONE
from prslib.portable import round_alike

IMAGES, EPOCHS, BATCH_SIZE = 20_000, 4, 20
SEED = 20090363
TRAINING = {
    "optimizer": "adam",
    "learning_rate": 0.002,
    "loss": "multilabel_soft_margin",
    "clip_value": 5.0,
}


def pretrain(name: str, images: int = IMAGES, seen: Callable = iter) -> dict[str, torch.Tensor]:
    """Train the small network before any stream; our own choice.

    Parameters
    ----------
    name : str
        A key of `EMBEDDED`, which names scenes and weights.
    images : int
        Scenes, each seen `EPOCHS` times.
    seen : callable
        Wraps the list of batches, to show how far it is.

    Returns
    -------
    dict of str to Tensor
        The network's state. With the same PyTorch the same bytes on every x86-64 processor.
    """
    round_alike()
    rng = np.random.default_rng(SEED)
    scenes, labels = draw_scenes(name, images, rng)
    network = make_model("convnet", scenes.shape[1:], labels.shape[1], seed=SEED, weights=NONE)
    orders = np.concatenate([rng.permutation(images) for _ in range(EPOCHS)])
    batches = np.split(orders, range(BATCH_SIZE, len(orders), BATCH_SIZE))
    pixels, targets = torch.from_numpy(scenes), torch.from_numpy(labels).float()
    Learner(network, **TRAINING).fit(pixels, targets, seen(batches))
    return network.state_dict()


def embed(name: str, seen: Callable = iter) -> Path:
    """Write weights where runs look for them; if they are others, so are the runs' hashes.

    Parameters
    ----------
    name, seen
        As for `pretrain`.

    Returns
    -------
    Path
        The file.
    """
    EMBEDDED[name].parent.mkdir(exist_ok=True)
    torch.save(pretrain(name, seen=seen), EMBEDDED[name])
    return EMBEDDED[name]
