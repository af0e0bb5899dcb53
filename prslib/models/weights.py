"""Weights that a network begins with: none, published or embedded ones by name, or a file."""

import hashlib
from functools import lru_cache
from pathlib import Path

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
        As for `prslib.models.pretrained.load_weights`.

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
        As for `prslib.models.pretrained.load_weights`.

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
