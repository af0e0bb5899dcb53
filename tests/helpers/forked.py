"""Imported by the process from which test_survival.py forks others: what a run loads is loaded."""

from prslib.training.config import RunConfig
from prslib.training.run import run

run(RunConfig(dataset="imbal-digits-tiny", method="PRS"))
