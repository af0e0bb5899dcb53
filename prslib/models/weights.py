"""Find and check a network's first weights: none, published, embedded, or a file."""

import hashlib
import re
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from prslib.paths import PACKAGE

if TYPE_CHECKING:  # a configuration needs these names, and no torch
    from torch import Tensor, nn

NONE = "none"
# begin of a SHA-256 in a published file's name
DIGEST = re.compile(r"-([0-9a-f]{8,})\.")
# several pretrainings, one a seed in turn
IN_TURN = {"digits": tuple(f"digits-{i}" for i in range(5))}
EMBEDDED = {  # weights of the convnet, made by studies/pretrain.py
    name: PACKAGE / "models" / "embedded" / f"convnet_{name}.pth"
    for name in (*IN_TURN["digits"], "turned_digits")
}


def of_seed(weights: str, seed: int) -> str:
    """Return which of several pretrainings a seed begins with, or the weights."""
    names = IN_TURN.get(weights, (weights,))
    return names[seed % len(names)]


def check_weights(model: str, weights: str, names: tuple[str, ...]) -> None:
    """Refuse weights that are neither "none" nor a published name nor a file."""
    if weights not in (NONE, *names) and not Path(weights).is_file():
        raise FileNotFoundError(
            f"weights of {model} must be {', '.join((NONE, *names))} or the path of a "
            f"file of weights; there is no file {weights!r}"
        )


def file_of(weights: str) -> Path | None:
    """Return the file that holds weights, embedded or a user's, or None."""
    path = EMBEDDED.get(weights, Path(weights))
    return path if path.is_file() else None


def identity_of(weights: str) -> str:
    """Return what a run's hash holds: a name, or "sha256:..." of a file's bytes."""
    if (path := file_of(weights)) is None:
        return weights
    return f"sha256:{_digest_of(path)}"


def _digest_of(file: Path) -> str:
    stat = file.stat()
    return _digest(file.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=32)
def _digest(file: Path, _changed: int, _size: int) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_weights(
    network: "nn.Module", name: str, weights: str, head: str = "fc."
) -> None:
    """Fill a network with weights, all but tensors whose names begin with ``head``."""
    if weights == NONE:
        return
    state = read_state(file_of(weights) or published_file(name, weights))
    shapes = [
        {
            key: tuple(value.shape)
            for key, value in tensors.items()
            # older files do not count batches
            if not key.startswith(head) and not key.endswith("num_batches_tracked")
        }
        for tensors in (network.state_dict(), state)
    ]
    expected, stored = shapes
    if wrong := sorted({key for key, _ in expected.items() ^ stored.items()}):
        raise ValueError(
            f"weights {weights}: expected the {len(expected)} tensors of {name}, but "
            f"{len(wrong)} are missing, too many or of another shape "
            f"({', '.join(wrong[:3])}, ...); give a file that was saved from {name}"
        )
    body = {key: value for key, value in state.items() if not key.startswith(head)}
    network.load_state_dict(body, strict=False)


def read_state(file: Path) -> dict:
    """Read tensors by name from a file whose checksums are right."""
    import torch

    try:
        check_file(file)
        stored = torch.load(file, map_location="cpu", weights_only=True)
        return {str(name): _unpack(value) for name, value in dict(stored).items()}
    except Exception as error:  # whatever a damaged file leads to
        raise ValueError(
            f"weights {file}: expected a state dict of dense, real and finite tensors "
            f"that torch.save has written, got another file ({type(error).__name__}: "
            f"{error}); download it again, or save the network's state_dict()"
        ) from error


def check_file(file: Path) -> None:
    """Raise ValueError unless a file has checksums, and these are right."""
    # torch.load compares none. A zip file has one for each of its members; torch's
    # older format is taken where the name has the digest, as those of torchvision's
    # files.
    if zipfile.is_zipfile(file):
        return check_zip(file)
    digest = DIGEST.search(file.name)
    if digest is None or not _digest_of(file).startswith(digest[1]):
        raise ValueError("no zip file, and its SHA-256 is not in its name")


def check_zip(path: Path) -> None:
    """Raise BadZipFile where a checksum is wrong: torch compares none."""
    with zipfile.ZipFile(path) as file:
        if (broken := file.testzip()) is not None:
            raise zipfile.BadZipFile(f"{broken} is damaged")


def _unpack(value: object) -> "Tensor":
    """Return a tensor of real, finite numbers, of int8 with a scale a channel, too."""
    import torch

    factors = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    for tensor in factors:
        kind = type(tensor).__name__
        if isinstance(tensor, torch.Tensor):
            kind = f"{tensor.layout} {tensor.dtype} on {tensor.device}"
            real = not (tensor.is_complex() or tensor.dtype == torch.bool)
            dense = tensor.layout == torch.strided and not tensor.is_quantized
            if real and dense and not tensor.is_meta and tensor.isfinite().all():
                continue
        raise ValueError(f"a value of {kind}, or one that is not finite")
    return factors[0] if len(factors) == 1 else factors[0] * factors[1]


def published_file(name: str, weights: str) -> Path:
    """Return the file of published weights; fetch it where it is not there."""
    import torch
    from torchvision.models import get_model_weights

    url = get_model_weights(name)[weights].url
    file = Path(torch.hub.get_dir(), "checkpoints", url.rsplit("/", 1)[-1])
    if file.is_file():
        return file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(file), DIGEST.search(file.name)[1])
    except (OSError, RuntimeError) as error:
        raise FileNotFoundError(
            f"weights {weights} of {name} are not in {file} and could not be fetched "
            f"from {url} ({error}); fetch that file where there is a network and put "
            "it there or give its path as weights, or begin with random weights, "
            "weights 'none'"
        ) from error
    return file
