"""Find and check a network's first weights: none, published or embedded ones, or a file."""

import hashlib
import pickle
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.paths import PACKAGE

if TYPE_CHECKING:  # a configuration needs these names, and no torch
    from torch import nn

NONE = "none"
IN_TURN = {"digits": tuple(f"digits-{i}" for i in range(5))}  # pretrainings, one a seed in turn
EMBEDDED = {  # weights of the convnet, written by `python -m prslib pretrain`
    name: PACKAGE / "models" / "embedded" / f"convnet_{name}.pth"
    for name in (*IN_TURN["digits"], "turned_digits")
}


def of_seed(weights: str, seed: int) -> str:
    """Return which of several pretrainings a seed begins with, else the weights themselves."""
    names = IN_TURN.get(weights, (weights,))
    return names[seed % len(names)]


def check_weights(model: str, weights: str, names: tuple[str, ...]) -> None:
    """Refuse weights that are neither "none" nor a published name nor a file."""
    if weights not in (NONE, *names) and not Path(weights).is_file():
        raise FileNotFoundError(
            f"weights of {model} must be {', '.join((NONE, *names))} or the path of a file of "
            f"weights; there is no file {weights!r}"
        )


def file_of(weights: str) -> Path | None:
    """Return the file that holds weights, an embedded or a user's; None where there is none."""
    path = EMBEDDED.get(weights, Path(weights))
    return path if path.is_file() else None


def identity_of(weights: str) -> str:
    """Return what a run's hash holds: a name, or "sha256:..." of a file's bytes."""
    if (path := file_of(weights)) is None:
        return weights
    stat = path.stat()
    return _digest(str(path.resolve()), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _digest(path: str, _changed: int, _size: int) -> str:
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def load_weights(network: "nn.Module", name: str, weights: str, head: str = "fc.") -> None:
    """Fill a network with weights, all but the tensors whose names begin with ``head``."""
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
    return {
        name: getattr(value, "shape", None)
        for name, value in state.items()
        if not name.startswith(head)
        and not name.endswith("num_batches_tracked")  # older files do not have it
    }


def _read(path: Path) -> dict:
    import torch

    try:
        if zipfile.is_zipfile(path):
            check_zip(path)
        given = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file leads to
        raise ValueError(
            f"weights {path}: expected a state dict that torch.save has written, got a file that "
            f"cannot be read as one ({type(error).__name__}: {error}); download or save it again"
        ) from error
    if not isinstance(given, dict):
        raise ValueError(
            f"weights {path}: expected a state dict, got {type(given).__name__}; save "
            "network.state_dict() instead"
        )
    state = {}
    for key, value in given.items():
        parts = value if isinstance(value, tuple) and len(value) == 2 else (value,)
        if not isinstance(key, str) or not all(map(_is_usable, parts)):
            raise ValueError(
                f"weights {path}: expected dense tensors of finite numbers by name, got another "
                f"{type(value).__name__} under {key!r}; save the network's state_dict()"
            )
        state[key] = value if len(parts) == 1 else parts[0] * parts[1]
    return state


def check_zip(path: Path) -> None:
    """Raise BadZipFile where a checksum is wrong: torch does not look at them itself."""
    with zipfile.ZipFile(path) as file:
        if (broken := file.testzip()) is not None:
            raise zipfile.BadZipFile(f"{broken} is damaged")


def _is_usable(value: object) -> bool:
    import torch

    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return dense and not (value.is_meta or value.is_quantized) and bool(value.isfinite().all())


def packed(state: dict) -> dict:
    """Round weights to int8 with a scale for each output channel; vectors stay as they are."""
    small = {}
    for name, value in state.items():
        if value.dim() > 1:
            scale = value.abs().amax(tuple(range(1, value.dim())), keepdim=True) / 127
            value = (value / scale).round().char(), scale
        small[name] = value
    return small


def _published(name: str, weights: str) -> dict:
    import torch
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
