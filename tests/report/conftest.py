"""Fixtures of the tests that draw and of those that run notebooks."""

import os
import subprocess
import sys

import matplotlib as mpl
import pytest
from registered import forgetting

from prslib.paths import project_root

mpl.use("Agg")


@pytest.fixture(scope="session")
def python(own_folders):
    """Call Python in the checkout as a command line does."""

    def call(*arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=project_root(),
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture(scope="module", autouse=True)
def forget_deviations():
    """Forget the methods that a list of runs has registered."""
    with forgetting():
        yield
