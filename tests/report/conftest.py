"""Fixtures of the tests that draw."""

import matplotlib as mpl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from prslib.report.style import STYLE


@pytest.fixture
def ax():
    with plt.style.context(STYLE):
        figure, ax = plt.subplots()
        yield ax
        figure.canvas.draw()  # a warning while drawing fails the test
        plt.close(figure)
