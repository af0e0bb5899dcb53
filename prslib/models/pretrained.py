"""Learned weights for a network, from torchvision's publication or from a file."""

import pickle
from pathlib import Path

import torch
from torch import nn

from prslib.models.weights import NONE, file_of


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
