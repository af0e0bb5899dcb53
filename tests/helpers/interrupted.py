"""Trainings by a clock that counts steps, which stop or are killed on the way."""

import os
import signal
from unittest.mock import patch

from prslib.experiments.store import CHECKPOINT
from prslib.training import checkpoint
from prslib.training.learner import Learner
from prslib.training.run import run_at_once


class Stopped(BaseException):
    """As a KeyboardInterrupt."""


def train_and_save(configs, store, save_every, after_step):
    """Train by a clock that counts steps, store the runs, remove the checkpoint."""
    file = min(store.path(config, CHECKPOINT) for config in configs)
    step, save = Learner.step, checkpoint.Checkpoint.save_if_due
    taken = []

    def count(learner, inputs, targets):
        taken.append(None)
        step(learner, inputs, targets)

    def save_if_due(saved, progress):
        save(saved, progress)
        if taken and taken[-1] is None:  # else the call after a task
            taken[-1] = progress.step
            after_step(taken)

    steps = patch.object(Learner, "step", count)
    saves = patch.object(checkpoint.Checkpoint, "save_if_due", save_if_due)
    clock = patch.object(checkpoint.time, "monotonic", lambda: len(taken))
    with steps, saves, clock:
        runs = run_at_once(configs, checkpoint=file, save_every=save_every)
    for run in runs:
        store.save(run)
    file.unlink(missing_ok=True)
    return taken


def stopped_at(step, configs, store, save_every=1):
    """Train until a step and stop, as Ctrl-C does; return the steps that were taken."""
    steps = []

    def stop(taken):
        steps[:] = taken
        if len(taken) == step:
            raise Stopped

    try:
        return train_and_save(configs, store, save_every, stop)
    except Stopped:
        return steps


def train(config, store, file, save_every, killed_after=None):
    """Train a run; ``save_every`` in steps, ``killed_after`` in seconds of its work."""
    notes = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(taken):
        os.write(notes, b".")  # a byte a step, which outlives the process
        if killed_after and len(taken) == 1:
            signal.setitimer(signal.ITIMER_VIRTUAL, killed_after)

    train_and_save([config], store, save_every, note)
