"""Save a run between two steps, and go on from there with the same numbers."""

import hashlib
import pickle
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from prslib.checks import check_int, checksum, expected, finite, one_line, same_setting
from prslib.datasets import load_dataset
from prslib.paths import PACKAGE, replacing
from prslib.training.config import RunConfig
from prslib.training.device import conditions
from prslib.training.learner import Learner
from prslib.training.replay import Replay, stream
from prslib.training.validation import check_scores, evaluations, score_cells

# in a dict that stands for a frame, or for an array and whether it was one number
FRAME = "pandas' frame"
ARRAY = "numpy's array"
NUMBER = "is a number"


class Progress:
    """Everything that changes in a run; the stream follows from the seed."""

    def __init__(self, learner: Learner, replay: Replay | None):
        self.learner = learner
        self.replay = replay  # None for a method without a memory
        # each saves its own state
        self.stateful: list[Any] = [learner.model, learner.optimizer]
        if learner.ewc:
            self.stateful.append(learner.ewc)
        if replay:
            self.stateful += [replay.sampler, replay.memory]
        self.step = 0  # training steps so far
        # of each segment what `Score` returned: frames by test set
        self.scores: list[Any] = []
        self.variances: dict[int, dict] = {}  # of the gradient over the memory, by step
        self.start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds of training that count; lost work and interruptions do not."""
        return time.perf_counter() - self.start

    def state_dict(self) -> dict:
        """Return the state as tensors, numbers, text, lists and dicts of these."""
        generator = self.replay.rng.bit_generator.state if self.replay else None
        return {
            "states": [as_tensors(each.state_dict()) for each in self.stateful],
            "generator": generator,
            "step": self.step,
            "scores": as_tensors(self.scores),
            "variances": self.variances,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was called; refuse a state of another form."""
        learner = self.learner
        check_form(state["states"][0], learner.model.state_dict())
        check_optimizer(state["states"][1], learner.optimizer)
        if learner.ewc:
            check_form(state["states"][2], learner.ewc.state_dict())
        for each, saved in zip(self.stateful, state["states"], strict=True):
            each.load_state_dict(as_arrays(saved))
        if self.replay:
            self.replay.rng.bit_generator.state = state["generator"]
        self.step = state["step"]
        self.scores = as_arrays(state["scores"])
        self.variances = state["variances"]
        self.start = time.perf_counter() - state["seconds"]


# `torch.load` reads tensors, numbers, text, lists and dicts without running code.
# Samplers, the memory and scores have numpy's arrays and pandas' frames, too.


def as_tensors(state: Any) -> Any:
    """Replace arrays, numpy's numbers and frames by dicts that say so, of tensors."""
    if isinstance(state, pd.DataFrame):
        return {FRAME: {name: as_tensors(state[name].tolist()) for name in state}}
    if isinstance(state, dict):
        return {name: as_tensors(value) for name, value in state.items()}
    if isinstance(state, list):
        return [as_tensors(value) for value in state]
    if isinstance(state, np.ndarray | np.generic):
        return {ARRAY: torch.from_numpy(np.array(state)), NUMBER: np.isscalar(state)}
    return state


def as_arrays(state: Any) -> Any:
    """Return what `as_tensors` was given."""
    if isinstance(state, list):
        return [as_arrays(value) for value in state]
    if not isinstance(state, dict):
        return state
    if state.keys() == {FRAME}:
        columns = as_arrays(state[FRAME])
        return pd.DataFrame({name: pd.Series(columns[name]) for name in columns})
    if state.keys() == {ARRAY, NUMBER}:
        array = state[ARRAY].cpu().numpy()
        return array[()] if state[NUMBER] else array
    return {name: as_arrays(value) for name, value in state.items()}


class Checkpoint:
    """A file with the progress of runs of one training, or None."""

    def __init__(
        self,
        path: str | PathLike | None,
        configs: Sequence[RunConfig],
        save_every: float,
    ):
        self.path = None if path is None else Path(path)
        self.configs = configs
        self.code = code_digest(PACKAGE)  # now: the files may change meanwhile
        self.save_every = save_every
        self.due = time.monotonic() + save_every

    def resume(self, start: Callable[[], Progress]) -> Progress:
        """Return the progress in the file, or that of a run that starts."""
        progress = start()
        if self.path is None or not self.path.exists():
            return progress
        try:
            state = self._read(self.path, progress.learner.device)
            progress.load_state_dict(state)
            self._check(progress)
        except Exception as error:  # such as the state of a network edited since
            reason = f"{type(error).__name__}: {one_line(error)}"
            text = f"cannot resume from the checkpoint {self.path}: {reason}"
            warnings.warn(f"{text}; the run starts again", stacklevel=4)
            return start()
        return progress

    def _read(self, path: Path, device: torch.device) -> dict:
        with zipfile.ZipFile(path) as file:  # torch compares no checksums
            if file.testzip():
                raise ValueError("it is damaged")
        try:
            saved = torch.load(path, map_location=device, weights_only=True)
        except pickle.UnpicklingError as error:  # such as one of an earlier version
            raise ValueError("it holds more than tensors, numbers and text") from error
        if saved["code"] != self.code or not self._runs() <= set(saved["runs"]):
            raise ValueError("other code or other runs wrote it")
        here = conditions(device)
        if saved["conditions"] != here:
            raise ValueError(expected(f"one made on {here}", saved["conditions"]))
        progress = saved["progress"]
        if not same_setting(saved["checksum"], checksum(progress)):
            raise ValueError("its content is not what was saved")
        return progress

    def _runs(self) -> set[str]:
        return {config.hash for config in self.configs}

    def _check(self, progress: Progress) -> None:
        """Refuse progress that cannot be of these runs."""
        config = self.configs[0]
        dataset = load_dataset(config.dataset, images=False)
        lengths = [len(segment.batches) for segment in stream(config, dataset)]
        ends = np.cumsum(lengths)  # the step after which each evaluation comes
        step = check_int("step", progress.step, least=0)
        evaluated = len(progress.scores)
        # the last step of a segment is saved before its evaluation, and after
        if evaluated not in (np.sum(ends < step), np.sum(ends <= step)):
            what = f"scores after steps {ends.tolist()}"
            raise ValueError(expected(what, f"{evaluated} of them at step {step}"))
        finite("seconds", progress.seconds, least=0)
        test_sets = {each.resolved["test_set"] for each in self.configs}
        steps = zip(evaluations(config), progress.scores, strict=False)
        own = any(each.own_threshold for each in self.configs)
        for groups, scores in steps:
            for name in test_sets:
                check_scores(scores[name], score_cells(config, groups, name, own))
        for at, row in progress.variances.items():
            finite("gradient variance", row["value"], least=0)
            if not 0 < check_int("step", at, least=1) <= step:
                raise ValueError(expected(f"gradient variances up to {step}", at))
        if progress.replay:
            check_rows(progress.replay, len(dataset.train))
            check_columns(progress.replay, progress.learner, dataset.num_classes)

    def save_if_due(self, progress: Progress) -> None:
        """Write the file if its time has come; only warn if it cannot be written."""
        if self.path is None or time.monotonic() < self.due:
            return
        state = progress.state_dict()
        saved = {
            "runs": sorted(self._runs()),
            "code": self.code,
            "conditions": conditions(progress.learner.device),
            "checksum": checksum(state),
            "progress": state,
        }
        try:
            with replacing(self.path) as file:
                torch.save(saved, file)
        except (OSError, RuntimeError) as error:  # such as torch's of a full disk
            text = f"the checkpoint {self.path} cannot be written ({error})"
            warnings.warn(f"{text}; the run goes on", stacklevel=2)
        self.due = time.monotonic() + self.save_every


def check_form(saved: Any, usual: Any) -> None:
    """Refuse a state without the entries, shapes and kinds of numbers of another."""
    if isinstance(usual, dict):
        if not isinstance(saved, dict) or saved.keys() != usual.keys():
            raise ValueError(expected(f"entries {list(usual)}", "others"))
        for name, value in usual.items():
            check_form(saved[name], value)
    elif isinstance(usual, torch.Tensor):
        check_tensor(saved, (usual.shape,))
    else:
        check_int("a count of batches", saved, least=0)


def check_tensor(saved: Any, shapes: Sequence[torch.Size]) -> None:
    """Refuse what is no tensor of finite numbers in one of some shapes."""
    if not isinstance(saved, torch.Tensor) or saved.shape not in shapes:
        raise ValueError(expected(f"a tensor of shape {tuple(shapes[0])}", "another"))
    if not saved.isfinite().all():
        raise ValueError(expected("finite numbers", "others"))


def check_optimizer(saved: dict, optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimiser's state with other settings, or for other parameters."""
    usual = optimizer.state_dict()["param_groups"]
    if saved["param_groups"] != usual:
        raise ValueError(expected(f"settings of the optimiser {usual}", "others"))
    parameters = [w for group in optimizer.param_groups for w in group["params"]]
    kinds = {tuple(entry) for entry in saved["state"].values()}
    if len(kinds) > 1:
        raise ValueError(expected("the same entries for all parameters", kinds))
    if not saved["state"].keys() <= set(range(len(parameters))):
        raise ValueError(expected(f"{len(parameters)} parameters", "others"))
    for number, entry in saved["state"].items():
        for tensor in entry.values():  # of each weight, or one number, as Adam's steps
            check_tensor(tensor, (parameters[number].shape, torch.Size()))


def check_rows(replay: Replay, images: int) -> None:
    """Refuse a memory of rows that the training set has not."""
    slots = replay.memory.filled
    if len(slots) == 0:
        return
    rows = replay.memory.read(slots)["index"]
    if rows.min() < 0 or rows.max() >= images:
        what = f"rows 0 to {images - 1} in memory"
        raise ValueError(expected(what, f"{rows.min()} to {rows.max()}"))


def check_columns(replay: Replay, learner: Learner, num_classes: int) -> None:
    """Refuse a memory with other columns than the method of training keeps."""
    slots = replay.memory.filled
    if len(slots):
        usual = learner.blank_columns(len(slots), num_classes)
        check_form(replay.kept(slots), usual)


@cache  # of the code that this process has loaded
def code_digest(package: Path) -> str:
    """Return a digest of what a run depends on: the code and two packages' versions."""
    digest = hashlib.sha256(f"{np.__version__}, {torch.__version__}".encode())
    for file in sorted(package.rglob("*.py")):
        if file.parent.name != "report":  # an edit there keeps the checkpoints
            digest.update(file.read_bytes())
    return digest.hexdigest()
