"""Trainings by a clock that counts steps, which stop or are killed on the way."""

import contextlib
import os
import signal
from unittest.mock import patch

from prslib.experiments import workers
from prslib.experiments.sweep import run_all
from prslib.experiments.workers import train_and_store
from prslib.training import checkpoint


class Stopped(BaseException):
    """As a KeyboardInterrupt."""


def stopped_at(step, group, store, save_every=1):
    """Train until a step and stop, as Ctrl-C does; return the steps that were taken."""
    taken, after_step = [], checkpoint.Checkpoint.after_step

    def stop(saved, progress):
        taken.append(progress.position)
        after_step(saved, progress)
        if len(taken) == step:
            raise Stopped

    steps = patch.object(checkpoint.Checkpoint, "after_step", stop)
    with steps, patch.object(checkpoint.time, "monotonic", lambda: len(taken)):
        try:
            outcomes = train_and_store(group, store, save_every=save_every)
        except Stopped:
            return taken
    assert [outcome.error for outcome in outcomes] == [None] * len(group)
    return taken


def attempt(config, *how, **options):
    """Attempt a single run and return its outcome."""
    (outcome,) = train_and_store([config], *how, **options)
    return outcome


def train(config, store, file, save_every, killed_after=None):
    """Attempt a run; ``save_every`` is in steps, ``killed_after`` in seconds of its own work."""
    taken, after_step = [], checkpoint.Checkpoint.after_step
    noted = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def count(saved, progress):
        taken.append(os.write(noted, b"."))  # a byte each, which outlives the process
        if killed_after and len(taken) == 1:
            signal.setitimer(signal.ITIMER_VIRTUAL, killed_after)
        after_step(saved, progress)

    steps = patch.object(checkpoint.Checkpoint, "after_step", count)
    with steps, patch.object(checkpoint.time, "monotonic", lambda: len(taken)):
        outcome = attempt(config, store, save_every=save_every)
    assert outcome.error is None, outcome.error


def sweep(configs, store, file, errors):
    """Ask for several runs at once and note which of them were trained here."""

    def told(unit, *arguments, train=workers.train_group):
        with open(file, "a") as noted:
            noted.writelines(f"{config.hash} {os.getpid()}\n" for config in unit)
        return train(unit, *arguments)

    workers.train_group = told
    with open(errors, "w") as bar, contextlib.redirect_stderr(bar):
        assert [run.config for run in run_all(configs, store, workers=1)] == configs
