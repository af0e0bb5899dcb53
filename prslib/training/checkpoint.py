"""Save the state of a run under way as tensors, numbers and text, and go on from it."""

import ast
import copy
import hashlib
import io
import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from prslib.models.weights import check_zip
from prslib.paths import PACKAGE, replacing
from prslib.training.config import SAVE_EVERY
from prslib.training.learner import Learner
from prslib.training.replay import Replay

# The sources that training a run loads: an edit elsewhere keeps the checkpoints.
TRAINING = (
    *("__init__.py", "checks.py", "memory.py", "metrics.py", "paths.py"),
    *(f"{room}/**/*.py" for room in ("datasets", "models", "samplers", "training")),
)


def pack(value: Any) -> Any:
    """Turn arrays and generators, also in dicts and named tuples, into what a checkpoint holds."""
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
    """Undo `pack`; ``like`` is a state of the same object and tells its named tuples' types."""
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
    """Everything that changes in the course of a run; the stream's order follows from the seed."""

    learner: Learner
    replay: Replay | None = None
    measured: bool = False  # whether someone looks at the memory on the way
    variances: list[dict] = field(default_factory=list)  # measurements so far
    scores: list[dict[str, pd.DataFrame]] = field(default_factory=list)  # by part and test set
    steps: int = 0  # taken in the part under way

    @property
    def stepwise(self) -> bool:
        """Tell whether the batches are made step by step, not ahead of training."""
        return self.replay is not None and (self.measured or bool(self.replay.sampler.needs))

    @property
    def position(self) -> tuple[int, int]:
        """Parts of the stream that are finished, and steps taken in the next one."""
        return len(self.scores), self.steps

    def finish_part(self, scores: dict[str, pd.DataFrame]) -> None:
        """Append the scores after a part, by test set, and begin the next one."""
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
        if self.stepwise:  # else the memory, too, follows from the seed
            for part in ("sampler", "memory"):
                own = vars(getattr(self.replay, part))
                own.update(unpack(state[part], own))
            self.replay.rng.bit_generator.state = state["rng"]


class Checkpoint:
    """A file with a run's progress in tensors, numbers and text: reading it executes nothing."""

    def __init__(
        self,
        path: Path | str | None,
        training: str,
        save_every: float = SAVE_EVERY,
        hashes: Collection[str] = (),  # of the runs that this training is for
    ):
        if not save_every > 0:
            raise ValueError(
                f"save_every must be above 0 seconds, got {save_every!r}; choose for example 300"
            )
        self.path = None if path is None else Path(path)
        self.training = training
        self.hashes = sorted(hashes)
        self.save_every = save_every
        self.code = path and code_version()  # now: the files may change during the run
        self._due = time.monotonic() + save_every

    def resume(self, progress: Progress) -> None:
        """Bring a run to the state in the file; without a usable one it starts at the beginning."""
        content = None if self.path is None else self._read()
        if content is None:
            return
        if content["training"] != self.training:
            raise ValueError(
                f"the checkpoint {self.path} belongs to training {content['training']}, expected "
                f"{self.training}; give every run a file of its own"
            )
        if content["code"] != self.code:
            return self._starts_over("other code wrote it")
        if not set(self.hashes) <= set(content["hashes"]):
            return self._starts_over("it was written for runs that look at less")
        before = copy.deepcopy(progress.state())
        try:
            progress.restore(content["progress"])
        except Exception as error:  # of whatever a file holds that no run has written
            progress.restore(before)
            self._starts_over(f"no run of this training has such a state: {error!r}")

    def after_step(self, progress: Progress) -> None:
        """Count a step, and write the file if its time has come."""
        progress.steps += 1
        self.save_if_due(progress)

    def save_if_due(self, progress: Progress) -> None:
        """Write the file if its time has come; only warn if it cannot be written."""
        if self.path is None or time.monotonic() < self._due:
            return
        content = {"training": self.training, "hashes": self.hashes, "code": self.code}
        buffer = io.BytesIO()
        torch.save(content | {"progress": progress.state()}, buffer)
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
            check_zip(self.path)
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            content["hashes"] = [*content["hashes"]]
            return {name: content[name] for name in ("training", "hashes", "code", "progress")}
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file raises, the run can start over
            return self._starts_over(f"it cannot be read: {error}")

    def _starts_over(self, why: str) -> None:
        warnings.warn(
            f"the checkpoint {self.path} is of no use, {why}; the run starts over", stacklevel=4
        )


@lru_cache
def code_version(package: Path = PACKAGE) -> str:
    """Return twelve hexadecimal digits over the code that trains, numpy's and torch's included."""
    digest = hashlib.sha256(f"numpy {np.__version__}, torch {torch.__version__}".encode())
    for file in sorted(file for name in TRAINING for file in package.glob(name)):
        module = ast.parse(file.read_bytes())  # without comments, and without docstrings:
        for node in ast.walk(module):
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [part for part in body if not _is_docstring(part)]
        digest.update(ast.dump(module).encode())
    return digest.hexdigest()[:12]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
