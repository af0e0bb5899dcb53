"""Save a run between two steps, and go on from there with the same numbers."""

import hashlib
import io
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from prslib.paths import PACKAGE, replacing
from prslib.training.config import RunConfig
from prslib.training.learner import Learner
from prslib.training.replay import Replay

# The files that training imports: an edit elsewhere keeps the checkpoints.
TRAINING = (
    *("checks.py", "memory.py", "metrics.py", "paths.py", "resamples.py"),
    *(f"{room}/*.py" for room in ("datasets", "models", "samplers", "training")),
)

DIGEST_SIZE = hashlib.sha256().digest_size  # a file begins with that of its other bytes


class Progress:
    """Everything that changes in a run; the stream follows from the seed."""

    def __init__(self, learner: Learner, replay: Replay | None):
        self.learner = learner
        self.replay = replay  # None for a method without a memory
        self.step = 0  # training steps so far
        self.scores: list[dict[str, pd.DataFrame]] = []  # by segment and test set
        self.variances: dict[int, dict] = {}  # of the gradient over the memory, by step

    def state_dict(self) -> dict:
        """Return all of it."""
        return {
            "learner": self.learner.state_dict(),
            "replay": self.replay.state_dict() if self.replay else None,
            "rest": (self.step, self.scores, self.variances),
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was called."""
        self.learner.load_state_dict(state["learner"])
        if self.replay:
            self.replay.load_state_dict(state["replay"])
        self.step, self.scores, self.variances = state["rest"]


class Checkpoint:
    """A file with the progress of runs of one training, or None.

    Reading it unpickles it: only a file of this user's own may be there.
    """

    def __init__(
        self,
        path: str | PathLike | None,
        configs: Sequence[RunConfig],
        save_every: float,
    ):
        self.path = None if path is None else Path(path)
        self.runs = {config.hash for config in configs}
        self.code = code_digest(PACKAGE)  # now: the files may change meanwhile
        self.save_every = save_every
        self.due = time.monotonic() + save_every

    def resume(self, start: Callable[[], Progress]) -> Progress:
        """Return the progress in the file, or that of a run that starts."""
        progress = start()
        if self.path is None or not self.path.exists():
            return progress
        try:
            progress.load_state_dict(self._read(progress.learner.device))
        except Exception as error:  # such as the state of a network edited since
            text = f"cannot resume from the checkpoint {self.path}: {error!r}"
            warnings.warn(f"{text}; the run starts again", stacklevel=4)
            return start()
        return progress

    def _read(self, device: torch.device) -> dict:
        stored = self.path.read_bytes()
        digest, content = stored[:DIGEST_SIZE], stored[DIGEST_SIZE:]
        if hashlib.sha256(content).digest() != digest:
            raise ValueError("it is not as it was written")
        saved = torch.load(io.BytesIO(content), map_location=device, weights_only=False)
        if not self.runs <= saved["runs"]:
            raise ValueError("other runs wrote it")
        if saved["code"] != self.code:
            raise ValueError("other code wrote it")
        return saved["progress"]

    def save_if_due(self, progress: Progress) -> None:
        """Write the file if its time has come; only warn if it cannot be written."""
        if self.path is None or time.monotonic() < self.due:
            return
        content = io.BytesIO()
        saved = {"runs": self.runs, "code": self.code}
        torch.save(saved | {"progress": progress.state_dict()}, content)
        try:
            with replacing(self.path) as file:
                file.write(hashlib.sha256(content.getbuffer()).digest())
                file.write(content.getbuffer())
        except OSError as error:
            text = f"the checkpoint {self.path} cannot be written ({error})"
            warnings.warn(f"{text}; the run goes on", stacklevel=2)
        self.due = time.monotonic() + self.save_every


@cache  # of the code that this process has loaded
def code_digest(package: Path) -> str:
    """Return a digest of the bytes of `TRAINING`, and of the versions of packages."""
    digest = hashlib.sha256(f"{np.__version__}, {torch.__version__}".encode())
    for file in sorted(file for name in TRAINING for file in package.glob(name)):
        digest.update(file.read_bytes())
    return digest.hexdigest()
