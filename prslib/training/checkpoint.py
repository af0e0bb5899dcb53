"""Save a run between two steps, and go on from there with the same numbers."""

import hashlib
import io
import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from prslib.paths import PACKAGE, replacing
from prslib.training.config import RunConfig
from prslib.training.learner import Learner
from prslib.training.replay import Replay

# The files that training imports: an edit elsewhere keeps the checkpoints.
TRAINING = (
    *(
        "__init__.py",
        "checks.py",
        "memory.py",
        "metrics.py",
        "paths.py",
        "resamples.py",
    ),
    *(f"{room}/**/*.py" for room in ("datasets", "models", "samplers", "training")),
)

DIGEST_SIZE = hashlib.sha256().digest_size  # a file begins with that of its other bytes


class Progress:
    """Everything that changes in a run; the stream follows from the seed."""

    def __init__(self, learner: Learner, replay: Replay | None):
        self.learner = learner
        self.replay = replay  # None for a method without a memory
        self.step = 0  # training steps so far
        self.scores: list[dict[str, pd.DataFrame]] = []  # by segment and test set
        self.variances: list[dict] = []  # of the gradient over the memory

    def state_dict(self) -> dict:
        """Return all of it in dicts and lists of tensors, numbers and text."""
        replay = self.replay.state_dict() if self.replay else None
        return {
            "learner": self.learner.state_dict(),
            "replay": converted(replay, np.ndarray, torch.from_numpy),
            "step": self.step,
            "scores": [
                {name: frame.to_dict("list") for name, frame in frames.items()}
                for frames in self.scores
            ],
            "variances": self.variances,
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was called."""
        self.learner.load_state_dict(state["learner"])
        if self.replay:
            replay = converted(state["replay"], torch.Tensor, torch.Tensor.numpy)
            self.replay.load_state_dict(replay)
        self.step = state["step"]
        self.scores = [
            {name: pd.DataFrame(columns) for name, columns in frames.items()}
            for frames in state["scores"]
        ]
        self.variances = state["variances"]


def converted(state: Any, kind: type, convert: Callable) -> Any:
    """Return a state with every value of a kind converted, in dicts of any depth."""
    if isinstance(state, dict):
        return {name: converted(value, kind, convert) for name, value in state.items()}
    return convert(state) if isinstance(state, kind) else state


class Checkpoint:
    """A file with a run's progress; reading it executes nothing."""

    def __init__(
        self,
        path: str | PathLike | None,
        configs: Sequence[RunConfig],  # of one training
        save_every: float,
    ):
        if not save_every > 0:
            raise ValueError(
                f"save_every must be above 0 seconds, got {save_every!r}; choose for "
                "example 300"
            )
        self.path = None if path is None else Path(path)
        self.runs = sorted({config.hash for config in configs})
        self.save_every = save_every
        self.code = path and code_version()  # now: the files may change meanwhile
        self.due = time.monotonic() + save_every

    def resume(self, start: Callable[[], Progress], ends: np.ndarray) -> Progress:
        """Return the progress in the file, or that of a run that starts.

        Segments of the stream end after the steps ``ends``.
        """
        if self.path is None or not self.path.exists():
            return start()
        try:
            return self._load(start(), ends)
        except Exception as error:  # of any kind: the file may hold anything
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            warnings.warn(
                f"cannot resume from the checkpoint {self.path}: {why}; "
                "the run starts again",
                stacklevel=4,
            )
            return start()

    def _load(self, progress: Progress, ends: np.ndarray) -> Progress:
        stored = self.path.read_bytes()
        digest, saved = stored[:DIGEST_SIZE], stored[DIGEST_SIZE:]
        if hashlib.sha256(saved).digest() != digest:
            raise ValueError("it is not as it was written")
        content = torch.load(io.BytesIO(saved), map_location="cpu", weights_only=True)
        if not set(self.runs) <= set(content["runs"]):
            raise ValueError("other runs wrote it")
        if content["code"] != self.code:
            raise ValueError("other code wrote it")
        progress.load_state_dict(content["progress"])
        ended = np.searchsorted(ends, progress.step, side="right")  # segments
        if progress.step < 0 or len(progress.scores) not in (ended - 1, ended):
            raise ValueError(f"no run has {len(progress.scores)} scores at this step")
        return progress

    def save_if_due(self, progress: Progress) -> None:
        """Write the file if its time has come; only warn if it cannot be written."""
        if self.path is None or time.monotonic() < self.due:
            return
        content = {"runs": self.runs, "code": self.code}
        buffer = io.BytesIO()
        torch.save(content | {"progress": progress.state_dict()}, buffer)
        saved = buffer.getbuffer()
        try:
            with replacing(self.path) as file:
                file.write(hashlib.sha256(saved).digest())
                file.write(saved)
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} cannot be written ({error}); the run goes "
                "on, and begins at the last one that could be if it is interrupted",
                stacklevel=2,
            )
        self.due = time.monotonic() + self.save_every


@lru_cache
def code_version(package: Path = PACKAGE) -> str:
    """Return twelve hexadecimal digits over the code that trains, with its packages."""
    versions = f"numpy {np.__version__}, torch {torch.__version__}"
    digest = hashlib.sha256(versions.encode())
    for file in sorted(file for name in TRAINING for file in package.glob(name)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
