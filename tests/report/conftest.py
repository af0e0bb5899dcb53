"""Fixtures of the tests that draw and of those that run notebooks."""

import os
import subprocess
import sys

import matplotlib as mpl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from prslib.paths import project_root
from prslib.report.style import STYLE


@pytest.fixture
def ax():
    with plt.style.context(STYLE):
        figure, ax = plt.subplots()
        yield ax
        figure.canvas.draw()  # a warning while drawing fails the test
        plt.close(figure)


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
