"""Weights that a network begins with: none, published or embedded ones by name, or a file."""

import hashlib
import pickle
from functools import lru_cache
from pathlib import Path

import torch
from torch import nn

from prslib.paths import PACKAGE

NONE = "none"
# what `python -m prslib pretrain` has written for the small network
EMBEDDED = {
    name: PACKAGE / "models" / "embedded" / f"convnet_{name}.pth"
    for name in ("digits", "turned_digits")
}


def check_weights(model: str, weights: str, names: tuple[str, ...]) -> None:
    """Refuse weights that are neither "none" nor a published name nor a file.

    Parameters
    ----------
    model : str
        The model's name, for the message.
    weights : str
        What was asked for.
    names : tuple of str
        Published weights of that model.

    Raises
    ------
    FileNotFoundError
        If it is none of these.

    Examples
    --------
    >>> check_weights("resnet101", "none", ("IMAGENET1K_V1",))
    """
    if weights not in (NONE, *names) and not Path(weights).is_file():
        raise FileNotFoundError(
            f"weights of {model} must be {', '.join((NONE, *names))} or the path of a file of "
            f"weights; there is no file {weights!r}"
        )


def file_of(weights: str) -> Path | None:
    """Return the file that holds weights, embedded ones or a user's; None where there is none.

    Parameters
    ----------
    weights : str
        As for `prslib.models.weights.load_weights`.

    Returns
    -------
    Path or None
        The file.
    """
    path = EMBEDDED.get(weights, Path(weights))
    return path if path.is_file() else None


def identity_of(weights: str) -> str:
    """Return what stands for weights in a run's hash: a file counts by its content.

    Parameters
    ----------
    weights : str
        As for `prslib.models.weights.load_weights`.

    Returns
    -------
    str
        The name, or "sha256:..." of the file's bytes.
    """
    path = file_of(weights)
    if path is None:
        return weights
    stat = path.stat()
    return _digest(str(path.resolve()), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _digest(path: str, _changed: int, _size: int) -> str:
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def load_weights(network: nn.Module, name: str, weights: str, head: str = "fc.") -> None:
    """Fill a network with weights; all but its last layer, which is each data set's own.

    Parameters
    ----------
    network : torch.nn.Module
        The network, filled in place.
    name : str
        Its name, torchvision's where it is from there: "resnet101".
    weights : str
        "none" leaves it random; "digits" is a file of ours (`prslib.models.weights.EMBEDDED`); a
        name such as "IMAGENET1K_V1" takes torchvision's, from its cache or the network; anything
        else is a file that holds the network's state dict.
    head : str
        How the names of the last layer's tensors begin.

    Raises
    ------
    FileNotFoundError
        If published weights are not in the cache and cannot be fetched.
    ValueError
        If the file cannot be read, or holds another network's weights.
    """
    if weights == NONE:
        return
    file = file_of(weights)
    given = _published(name, weights) if file is None else _read(file)
    given = {k: v for k, v in given.items() if not k.startswith(head)}
    expected, found = _shapes(network.state_dict(), head), _shapes(given, head)
    wrong = sorted(k for k in expected.keys() | found if expected.get(k) != found.get(k))
    if wrong:
        raise ValueError(
            f"weights {weights}: expected the {len(expected)} tensors of {name}, but "
            f"{len(wrong)} are missing, too many or of another shape ({', '.join(wrong[:3])}, "
            f"...); give a file that was saved from {name}"
        )
    network.load_state_dict(given, strict=False)


def _shapes(state: dict, head: str) -> dict:
    """Return the shapes of what must be there; older files do not count batches."""
    return {
        name: getattr(value, "shape", None)
        for name, value in state.items()
        if not name.startswith(head) and not name.endswith("num_batches_tracked")
    }


def _read(path: Path) -> dict:
    try:
        given = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise ValueError(
            f"weights {path}: expected a state dict that torch.save has written, got a file that "
            f"cannot be read as one ({type(error).__name__}); download or save it again"
        ) from error
    if not isinstance(given, dict):
        raise ValueError(
            f"weights {path}: expected a state dict, got {type(given).__name__}; save "
            "network.state_dict() instead"
        )
    return given


def _published(name: str, weights: str) -> dict:
    from torchvision.models import get_model_weights

    chosen = get_model_weights(name)[weights]
    try:
        return chosen.get_state_dict(progress=True, check_hash=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:  # or a download that was cut
        file = Path(torch.hub.get_dir(), "checkpoints", chosen.url.rsplit("/", 1)[-1])
        raise FileNotFoundError(
            f"weights {weights} of {name} are not in {file} and could not be fetched from "
            f"{chosen.url} ({error}); fetch that file where there is a network and put it there "
            "or give its path as weights, or begin with random weights, weights 'none'"
        ) from error
