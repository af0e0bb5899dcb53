"""Save a run between two steps, and go on from there with the same numbers."""

import hashlib
import time
import warnings
import zipfile
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


class Progress:
    """Everything that changes in a run; the stream follows from the seed."""

    def __init__(self, learner: Learner, replay: Replay | None):
        self.learner = learner
        self.replay = replay  # None for a method without a memory
        self.stateful = [learner.model, learner.optimizer]  # each saves its own state
        if learner.ewc:
            self.stateful.append(learner.ewc)
        if replay:
            self.stateful += [replay.sampler, replay.memory]
        self.step = 0  # training steps so far
        self.scores: list[dict[str, pd.DataFrame]] = []  # by segment and test set
        self.variances: dict[int, dict] = {}  # of the gradient over the memory, by step

    def state_dict(self) -> dict:
        """Return the state of network, optimiser, sampler, memory and results."""
        return {
            "states": [each.state_dict() for each in self.stateful],
            "rng": self.replay.rng if self.replay else None,
            "step": self.step,
            "scores": self.scores,
            "variances": self.variances,
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was called."""
        for each, saved in zip(self.stateful, state["states"], strict=True):
            each.load_state_dict(saved)
        if self.replay:
            self.replay.rng = state["rng"]
        self.step = state["step"]
        self.scores = state["scores"]
        self.variances = state["variances"]


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
        with zipfile.ZipFile(self.path) as file:  # torch compares no checksums
            if file.testzip():
                raise ValueError("it is damaged")
        saved = torch.load(self.path, map_location=device, weights_only=False)
        if saved["code"] != self.code or not self.runs <= saved["runs"]:
            raise ValueError("other code or other runs wrote it")
        return saved["progress"]

    def save_if_due(self, progress: Progress) -> None:
        """Write the file if its time has come; only warn if it cannot be written."""
        if self.path is None or time.monotonic() < self.due:
            return
        saved = {"runs": self.runs, "code": self.code}
        try:
            with replacing(self.path) as file:
                torch.save(saved | {"progress": progress.state_dict()}, file)
        except (OSError, RuntimeError) as error:  # such as torch's of a full disk
            text = f"the checkpoint {self.path} cannot be written ({error})"
            warnings.warn(f"{text}; the run goes on", stacklevel=2)
        self.due = time.monotonic() + self.save_every


@cache  # of the code that this process has loaded
def code_digest(package: Path) -> str:
    """Return a digest of what a run depends on: the code and two packages' versions."""
    digest = hashlib.sha256(f"{np.__version__}, {torch.__version__}".encode())
    for file in sorted(package.rglob("*.py")):
        if file.parent.name != "report":  # an edit there keeps the checkpoints
            digest.update(file.read_bytes())
    return digest.hexdigest()
