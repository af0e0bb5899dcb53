"""Fixtures of the tests that draw and of those that run notebooks."""

import os
import subprocess
import sys

import matplotlib as mpl
import pytest

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
