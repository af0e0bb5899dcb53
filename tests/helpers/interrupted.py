"""Trainings by a clock that counts steps, which stop on the way."""

from unittest.mock import patch

from prslib.experiments.store import CHECKPOINT
from prslib.training import checkpoint
from prslib.training.learner import Learner
from prslib.training.run import run_at_once


class Stopped(BaseException):
    """As a KeyboardInterrupt."""


def stopped_at(step, config, store, save_every=1, file=None, device="cpu"):
    """Train until a step and stop, as Ctrl-C does; return the steps that were taken."""
    file = file or store.path(config, CHECKPOINT)
    taken = []
    train, save = Learner.step, checkpoint.Checkpoint.save_if_due

    def count(learner, *arguments):
        taken.append(None)
        return train(learner, *arguments)

    def save_if_due(saved, progress):
        save(saved, progress)
        if taken and taken[-1] is None:  # else the call after a task
            taken[-1] = progress.step
            if len(taken) == step:
                raise Stopped

    steps = patch.object(Learner, "step", count)
    saves = patch.object(checkpoint.Checkpoint, "save_if_due", save_if_due)
    clock = patch.object(checkpoint.time, "monotonic", lambda: len(taken))
    try:
        with steps, saves, clock:
            (run,) = run_at_once([config], device, file, save_every)
    except Stopped:
        return taken
    store.save(run)
    file.unlink(missing_ok=True)
    return taken
