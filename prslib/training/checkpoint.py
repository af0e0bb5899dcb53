"""The state of samplers and memories as tensors, numbers and text, and back."""

import hashlib
import io
import time
import warnings
import zipfile
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from prslib.paths import PACKAGE, replacing
from prslib.training.config import SAVE_EVERY
from prslib.training.learner import Learner
from prslib.training.replay import Replay


def pack(value: Any) -> Any:
    """Turn arrays and generators, in dicts and named tuples too, into what a checkpoint may hold.

    Parameters
    ----------
    value : None, bool, int, float, str, Tensor, ndarray or Generator
        A state, or a dict or NamedTuple of such.

    Returns
    -------
    object
        What `unpack` turns back into an equal one.

    Raises
    ------
    TypeError
        If there is something else in it.

    Examples
    --------
    >>> unpack(pack({"seen": np.array([3, 4])}), like={})
    {'seen': array([3, 4])}
    """
    if value is None or isinstance(value, bool | int | float | str | torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return "array", torch.from_numpy(value)
    if isinstance(value, np.random.Generator):
        return "generator", value.bit_generator.state
    if hasattr(value, "_asdict"):
        return "fields", pack(value._asdict())
    if isinstance(value, dict):
        return "dict", {name: pack(part) for name, part in value.items()}
    raise TypeError(
        "a checkpoint holds numbers, text, arrays, tensors, generators, dicts and named tuples "
        f"of them, got {type(value).__name__}; keep a sampler's state in these"
    )


def unpack(packed: Any, like: Any) -> Any:
    """Undo `pack`; arrays and generators are new ones.

    Parameters
    ----------
    packed : object
        What `pack` returned.
    like : object
        A state of the same object, such as it has at the beginning: tells which named tuples it is
        made of.

    Returns
    -------
    object
        Equal to what was packed.
    """
    if not isinstance(packed, tuple):
        return packed
    kind, content = packed
    if kind == "array":
        return content.numpy()
    if kind == "generator":
        generator = np.random.default_rng()
        generator.bit_generator.state = content
        return generator
    if kind == "fields":
        return type(like)(**unpack(content, like._asdict()))
    return {name: unpack(part, like.get(name)) for name, part in content.items()}


@dataclass
class Progress:
    """Everything that changes while a run goes on; our own.

    Parameters
    ----------
    learner : Learner
        The network, its optimiser and what EWC keeps.
    replay : Replay or None
        The memory, who decides what it keeps, and who draws from it; None without a memory.
    watched : bool
        Whether someone looks at the memory on the way.
    scores : list of dict of str to DataFrame
        One for each part of the stream that is finished, by test set.
    variances : list of dict
        The measurements of the gradient variance so far.
    steps : int
        Steps taken in the part under way.

    Notes
    -----
    The stream needs no state: its order follows from the seed. Where the sampler looks at labels
    alone the same holds of the whole replay plan, so that the memory is in `state` only where the
    plan is made step by step.
    """

    learner: Learner
    replay: Replay | None = None
    watched: bool = False
    variances: list[dict] = field(default_factory=list)
    scores: list[dict[str, pd.DataFrame]] = field(default_factory=list)
    steps: int = 0

    @property
    def stepwise(self) -> bool:
        """Whether the batches are made step by step, and not ahead of training."""
        return self.replay is not None and (self.watched or bool(self.replay.sampler.needs))

    @property
    def position(self) -> tuple[int, int]:
        """Parts of the stream that are finished, and steps taken in the next one."""
        return len(self.scores), self.steps

    def finish_part(self, scores: dict[str, pd.DataFrame]) -> None:
        """Append the scores after a part, by test set; the next part begins."""
        self.scores.append(scores)
        self.steps = 0

    def state(self) -> dict:
        """Return all of it as tensors, numbers and text in dicts and lists."""
        state = {
            "learner": self.learner.state_dict(),
            "scores": [
                {name: frame.to_dict("list") for name, frame in part.items()}
                for part in self.scores
            ],
            "variances": self.variances,
            "steps": self.steps,
        }
        if self.stepwise:
            state["sampler"] = pack(vars(self.replay.sampler))
            state["memory"] = pack(vars(self.replay.memory))
            state["rng"] = self.replay.rng.bit_generator.state
        return state

    def restore(self, state: dict) -> None:
        """Go back to what `state` returned; learner, sampler and memory are changed in place."""
        self.learner.load_state_dict(state["learner"])
        self.scores = [
            {name: pd.DataFrame(frame) for name, frame in part.items()} for part in state["scores"]
        ]
        self.variances, self.steps = state["variances"], state["steps"]
        if self.stepwise:  # else the memory follows from the seed, whoever looked at it before
            for part in ("sampler", "memory"):
                own = vars(getattr(self.replay, part))
                own.update(unpack(state[part], own))
            self.replay.rng.bit_generator.state = state["rng"]


class Checkpoint:
    """A file with a run's progress, written anew every so many seconds; our own.

    Parameters
    ----------
    path : path-like or None
        The file; None for a run that leaves none.
    training : str
        `RunConfig.training`: a file of another training is refused.
    save_every : float
        Seconds from one writing to the next; the clock is looked at after every step.
    leaves : collection of str
        The hashes of the runs that this training is to leave; a file that was written for others
        is of use if these are among them.

    Raises
    ------
    ValueError
        If ``save_every`` is not above 0.

    Notes
    -----
    The file holds tensors, numbers and text only: reading it executes nothing. It is of use to the
    code that wrote it and to no other, since another version might go on differently.
    """

    def __init__(
        self,
        path: Path | str | None,
        training: str,
        save_every: float = SAVE_EVERY,
        leaves: Collection[str] = (),
    ):
        if not save_every > 0:
            raise ValueError(
                f"save_every must be above 0 seconds, got {save_every!r}; choose for example 300"
            )
        self.path = None if path is None else Path(path)
        self.training = training
        self.leaves = sorted(leaves)
        self.save_every = save_every
        self.code = code_version()  # now: the files may change while this process goes on
        self._due = time.monotonic() + save_every

    def resume(self, progress: Progress) -> None:
        """Bring a run to where its file says it was; without one it begins at the beginning.

        Parameters
        ----------
        progress : Progress
            Of a run before its first step; changed in place.

        Raises
        ------
        ValueError
            If the file belongs to another training.

        Warns
        -----
        UserWarning
            If the file cannot be read, other code wrote it, or it lacks what one of the runs is to
            leave: the training starts over.
        """
        content = None if self.path is None else self._read()
        if content is None:
            return
        if content["training"] != self.training:
            raise ValueError(
                f"the checkpoint {self.path} belongs to training {content['training']}, expected "
                f"{self.training}; give every run a file of its own"
            )
        if content["code"] != self.code:
            self._starts_over("other code wrote it")
            return
        if not set(self.leaves) <= set(content["leaves"]):
            self._starts_over("it was written for runs that look at less")
            return
        progress.restore(content["progress"])

    def after_step(self, progress: Progress) -> None:
        """Count a step, and write the file if its time has come."""
        progress.steps += 1
        self.save_if_due(progress)

    def save_if_due(self, progress: Progress) -> None:
        """Write the file if its time has come; a file that cannot be written is a warning."""
        if self.path is None or time.monotonic() < self._due:
            return
        content = {
            "training": self.training,
            "leaves": self.leaves,
            "code": self.code,
            "progress": progress.state(),
        }
        buffer = io.BytesIO()
        torch.save(content, buffer)
        try:
            with replacing(self.path) as file:
                file.write(buffer.getbuffer())
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} cannot be written ({error}); the run goes on, and "
                "begins at the last one that could be if it is interrupted",
                stacklevel=2,
            )
        self._due = time.monotonic() + self.save_every

    def _read(self) -> dict | None:
        try:
            with zipfile.ZipFile(self.path) as file:
                broken = file.testzip()  # torch does not look at the checksums itself
            if broken is not None:
                raise zipfile.BadZipFile(f"{broken} is damaged")
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            return {name: content[name] for name in ("training", "leaves", "code", "progress")}
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file leads to, the run can start over
            self._starts_over(f"it cannot be read: {error}")
            return None

    def _starts_over(self, why: str) -> None:
        warnings.warn(
            f"the checkpoint {self.path} is of no use, {why}; the run starts over", stacklevel=4
        )


@lru_cache
def code_version() -> str:
    """Return what tells the code that trains from any other: prslib's own, numpy's and torch's.

    Returns
    -------
    str
        Twelve hexadecimal digits over the sources of prslib, its plots left out.

    Examples
    --------
    >>> len(code_version())
    12
    """
    digest = hashlib.sha256(f"numpy {np.__version__}, torch {torch.__version__}".encode())
    for file in sorted(PACKAGE.rglob("*.py")):
        if "plots" not in file.parts:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
