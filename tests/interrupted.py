"""What the processes of test_survival.py do: train with a clock that counts steps, and tell."""

import os
import signal

from prslib import checkpoint
from prslib.attempt import attempt


class Steps:
    """Every step taken, in a file that outlives the process, and a clock that shows their number.

    Parameters
    ----------
    file : Path
        Gets a byte a step.
    last : int or None
        The step after which the process kills itself.
    """

    def __init__(self, file, last=None):
        self.taken, self.last = 0, last
        self.file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def watch(self, patch):
        after_step = checkpoint.Checkpoint.after_step

        def counted(saved, progress):
            self.taken += 1
            os.write(self.file, b".")
            if self.taken == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            after_step(saved, progress)

        patch(checkpoint.Checkpoint, "after_step", counted)
        patch(checkpoint.time, "monotonic", lambda: self.taken)


def train(config, store, file, save_every, last=None):
    """Attempt a run; ``save_every`` is in steps."""
    import torch

    torch.set_num_threads(1)
    Steps(file, last).watch(setattr)
    outcome = attempt(config, store, save_every=save_every)
    assert outcome.error is None, outcome.error
