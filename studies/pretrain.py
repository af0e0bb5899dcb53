"""Train the embedded initial weights of the small network again.

Run ``python studies/pretrain.py`` for all, or ``python studies/pretrain.py digits-0`` for
one. It trains the small network on scenes that are in no stream, and stores its weights in
data/. Each network takes about a minute. The same version of PyTorch gives the same bytes
on every x86-64 processor. Another version may round differently, which also changes all
runs that start from the weights.
"""

import argparse

import numpy as np
import torch
from tqdm import tqdm

from prslib.datasets import scenes
from prslib.device import run_settings
from prslib.losses import multilabel_soft_margin
from prslib.models.networks import make_model
from prslib.models.weights import EMBEDDED, NONE
from prslib.rounding import set_deterministic

IMAGES, EPOCHS, BATCH_SIZE = 20_000, 4, 20
SEED = 20090363
LEARNING_RATE, CLIP_VALUE = 0.002, 5.0
CLASS_NAMES = tuple(
    f"{colour} {digit}" for digit in range(10) for colour in scenes.OTHER_COLOURS
)
# quarter turns, counter-clockwise, by the name of the scenes
TURNS = {"digits": 0, "turned_digits": 1}
# share of the scenes with 1, 2, 3, 4 labels
LABELS_PER_IMAGE = (0.60, 0.25, 0.10, 0.05)


def draw_scenes(
    name: str, images: int, rng: np.random.Generator, split: str = "train"
) -> tuple[np.ndarray, np.ndarray]:
    """Draw scenes to pretrain on, uint8 (images, 32, 32, 3), and their labels."""
    # Digits are turned by `TURNS` and have other colours than in the streams. "train"
    # uses no originals of the streams' tests.
    count = 1 + rng.choice(len(LABELS_PER_IMAGE), size=images, p=LABELS_PER_IMAGE)
    rank = rng.random((images, len(CLASS_NAMES))).argsort(axis=1).argsort(axis=1)
    labels = rank < count[:, None]
    pictures, of_digit = scenes.read_originals(scenes.generator(2))[split]
    turned = np.rot90(pictures, TURNS[name], axes=(1, 2))
    digit, colour = scenes.glyphs(CLASS_NAMES, scenes.OTHER_COLOURS)
    return scenes.render_scenes(labels, digit, colour, (turned, of_digit), rng), labels


def pretrain(name: str, images: int = IMAGES) -> dict[str, torch.Tensor]:
    """Train the small network on scenes and return its state; "digits-3" has another seed."""
    set_deterministic()
    scenes_name, _, number = name.partition("-")
    seed = SEED + int(number or 0)
    rng = np.random.default_rng(seed)
    pictures, labels = draw_scenes(scenes_name, images, rng)
    network = make_model(
        "convnet", pictures.shape[1:], labels.shape[1], seed=seed, weights=NONE
    )
    orders = np.concatenate([rng.permutation(images) for _ in range(EPOCHS)])
    batches = np.split(orders, range(BATCH_SIZE, len(orders), BATCH_SIZE))
    pixels = torch.from_numpy(pictures)
    targets = torch.from_numpy(labels.astype(np.float32))
    weights = list(network.parameters())
    optimizer = torch.optim.Adam(weights, lr=LEARNING_RATE, fused=True)
    with run_settings(torch.device("cpu")):
        for rows in tqdm(batches, desc=name, unit="step"):
            images = pixels[rows].permute(0, 3, 1, 2).float().div_(255)
            loss = multilabel_soft_margin(network(images), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(weights, CLIP_VALUE)
            optimizer.step()
    return network.state_dict()


def pack(state: dict[str, torch.Tensor]) -> dict:
    """Round weights to int8 with a scale per channel; vectors stay as they are."""
    small = {}
    for name, value in state.items():
        if value.dim() > 1:
            scale = value.abs().amax(tuple(range(1, value.dim())), keepdim=True) / 127
            value = (value / scale).round().char(), scale
        small[name] = value
    return small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "name", nargs="*", help=f"by default all: {', '.join(EMBEDDED)}"
    )
    torch.set_num_threads(1)
    for name in parser.parse_args().name or EMBEDDED:
        torch.save(pack(pretrain(name)), EMBEDDED[name])
        print(EMBEDDED[name])


if __name__ == "__main__":
    main()
