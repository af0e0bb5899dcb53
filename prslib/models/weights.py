"""Find a network's initial weights: none, published, embedded, or a file."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.checks import expected, readable
from prslib.paths import DATA, check_embedded

# a configuration needs these names, and no torch
if TYPE_CHECKING:
    from torch import Tensor, nn

NONE = "none"
# several pretrainings, one a seed in turn
IN_TURN = {"digits": tuple(f"digits-{i}" for i in range(5))}
# weights of the convnet, made by studies/pretrain.py
EMBEDDED = {
    name: DATA / f"convnet_{name}.pth" for name in (*IN_TURN["digits"], "turned_digits")
}


def weights_for_seed(weights: str, seed: int) -> str:
    """Return which of several pretrainings a seed begins with, or the weights."""
    names = IN_TURN.get(weights, (weights,))
    return names[seed % len(names)]


def check_weights(model: str, weights: str, names: tuple[str, ...]) -> None:
    """Refuse weights that are neither "none" nor a published name nor a file."""
    if weights not in (NONE, *names) and not Path(weights).is_file():
        what = f"weights of {model}: {', '.join((NONE, *names))} or a file"
        raise FileNotFoundError(expected(what, repr(weights)))


def file_of(weights: str) -> Path | None:
    """Return the file that holds weights, embedded or a user's, or None."""
    path = EMBEDDED.get(weights, Path(weights))
    check_embedded(path)
    return path if path.is_file() else None


def identity_of(weights: str) -> str:
    """Return what a run's hash holds: a name, or "sha256:..." of a file's bytes."""
    path = file_of(weights)
    return weights if path is None else _digest(path, path.stat().st_mtime_ns)


# every look at a configuration's hash asks for it
@lru_cache(maxsize=32)
def _digest(path: Path, _changed: int) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def load_weights(
    network: "nn.Module", name: str, weights: str, head: str = "fc."
) -> None:
    """Fill a network with weights, all but tensors whose names begin with ``head``."""
    if weights == NONE:
        return
    state = read_state(file_of(weights) or published_file(name, weights))
    state = {key: value for key, value in state.items() if not key.startswith(head)}
    random = network.state_dict()
    state |= {key: value for key, value in random.items() if key.startswith(head)}
    network.load_state_dict(state)


def read_state(file: Path) -> dict[str, "Tensor"]:
    """Read a state dict, also of int8 with a scale a channel."""
    import torch

    with readable(f"a state dict that torch.save has written in {file}"):
        stored = torch.load(file, map_location="cpu", weights_only=True)
        return {
            name: value[0] * value[1] if isinstance(value, tuple) else value
            for name, value in stored.items()
        }


def published_file(name: str, weights: str) -> Path:
    """Return the file of published weights; fetch it if it is missing."""
    import torch
    from torchvision.models import get_model_weights

    url = get_model_weights(name)[weights].url
    file = Path(torch.hub.get_dir(), "checkpoints", url.rsplit("/", 1)[-1])
    try:
        torch.hub.load_state_dict_from_url(url, map_location="cpu", check_hash=True)
    except (OSError, RuntimeError) as error:
        what = f"weights {weights} of {name} in {file} or at {url}"
        advice = "put that file there, give its path as weights, or choose 'none'"
        raise FileNotFoundError(expected(what, error, advice)) from error
    return file
