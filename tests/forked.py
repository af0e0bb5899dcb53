"""Imported by the process from which test_survival.py forks others: what a run loads is loaded."""

from prslib.config import RunConfig
from prslib.experiment import run

run(RunConfig(dataset="imbal-digits-tiny", method="PRS"))
