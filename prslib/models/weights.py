"""Find a network's initial weights: none, published, embedded, or a file."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.checks import expected, readable
from prslib.paths import DATA, check_embedded

# configurations need the names of weights, but not torch
if TYPE_CHECKING:
    from torch import Tensor, nn

NONE = "none"
# several pretrained networks, which the seeds use in rotation
IN_TURN = {"digits": tuple(f"digits-{i}" for i in range(5))}
# weights of the convnet, made by studies/pretrain.py
EMBEDDED = {
    name: DATA / f"convnet_{name}.pth" for name in (*IN_TURN["digits"], "turned_digits")
}


def weights_for_seed(weights: str, seed: int) -> str:
    """Return the weights that a seed uses; a name may stand for several networks."""
    names = IN_TURN.get(weights, (weights,))
    return names[seed % len(names)]


def check_weights(model: str, weights: str, names: tuple[str, ...]) -> None:
    """Refuse weights that are neither "none" nor a published name nor a file."""
    if weights not in (NONE, *names) and not Path(weights).is_file():
        what = f"weights of {model}: {', '.join((NONE, *names))} or a file"
        raise FileNotFoundError(expected(what, repr(weights)))


def file_of(weights: str) -> Path | None:
    """Return the file of weights, embedded or a user's; None for a published name."""
    path = EMBEDDED.get(weights, Path(weights))
    check_embedded(path)
    return path if path.is_file() else None


def identity_of(weights: str) -> str:
    """Return what identifies weights in a run's key: a name, or a file's SHA-256."""
    path = file_of(weights)
    return weights if path is None else _digest(path, path.stat().st_mtime_ns)


# needed for every key of a configuration
@lru_cache(maxsize=32)
def _digest(path: Path, _changed: int) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def load_weights(
    network: "nn.Module", name: str, weights: str, head: str = "fc."
) -> None:
    """Load weights into a network, except tensors whose names begin with ``head``."""
    if weights == NONE:
        return
    state = read_state(file_of(weights) or published_file(name, weights))
    state = {key: value for key, value in state.items() if not key.startswith(head)}
    random = network.state_dict()
    state |= {key: value for key, value in random.items() if key.startswith(head)}
    network.load_state_dict(state)


def read_state(file: Path) -> dict[str, "Tensor"]:
    """Read a state dict, whose tensors may be int8 with a scale per channel."""
    import torch

    with readable(f"a state dict that torch.save has written in {file}"):
        stored = torch.load(file, map_location="cpu", weights_only=True)
        return {
            name: value[0] * value[1] if isinstance(value, tuple) else value
            for name, value in stored.items()
        }


def published_file(name: str, weights: str) -> Path:
    """Return the file of published weights; download it if it is missing."""
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
