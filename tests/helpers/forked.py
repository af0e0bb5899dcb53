"""Load what a run loads, in the process from which test_checkpoint.py forks others."""

from prslib.training.config import RunConfig
from prslib.training.run import run

run(RunConfig(dataset="imbal-digits-tiny", method="PRS", batch_size=40))
