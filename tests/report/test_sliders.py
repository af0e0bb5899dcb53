"""The sliders show what a sampler holds, and every one redraws."""

import io

import numpy as np
import pytest
from PIL import Image

from prslib.report import walkthrough
from prslib.report.sliders import MemorySliders
from prslib.samplers import make_sampler


@pytest.fixture(scope="module")
def sliders():
    return MemorySliders(samples=1400, num_classes=12, seed=3)


def test_a_redraw_shows_what_the_sampler_holds(sliders):
    sliders.redraw(rho=0.5, memory_size=90, skew=1.2)
    stream = walkthrough.skewed_stream(1400, 12, 1.2, seed=3)
    sampler = make_sampler("prs", 90, 12, 3, rho=0.5)
    sampler.place(stream)
    assert sliders.numbers["in_memory"].tolist() == sampler.class_counts.tolist()
    lines = sliders.figure.axes[0].lines
    for line, name in zip(lines, ("stream", "quota", "in_memory"), strict=True):
        shown = np.nan_to_num(line.get_ydata())
        np.testing.assert_allclose(shown, sliders.numbers[name])
    assert (
        "ms a redraw of 1,400 samples" in sliders.speed_sentence()
    )  # and leaves the picture
    first = np.asarray(Image.open(io.BytesIO(sliders.image.value)))
    sliders.redraw(rho=-0.5, memory_size=90, skew=1.2)
    second = np.asarray(Image.open(io.BytesIO(sliders.image.value)))
    assert first.shape == second.shape == (360, 900, 4)
    assert (first != second).any()
    sliders.redraw(rho=0.5, memory_size=90, skew=1.2)
    assert (np.asarray(Image.open(io.BytesIO(sliders.image.value))) == first).all()


def test_every_slider_redraws(sliders):
    box = sliders.widget(rho=0.0)
    rho, memory_size, skew = box.children[0].children
    assert box.children[1] is sliders.image
    assert memory_size.value == 1400 * 2 // 35
    for slider, value in ((rho, 0.5), (memory_size, 200), (skew, 1.8)):
        before = sliders.image.value
        slider.value = value
        assert sliders.image.value != before
    expected = walkthrough.quotas(
        walkthrough.skewed_stream(1400, 12, skew.value, seed=3),
        memory_size.value,
        [0.5],
        3,
    )
    assert sliders.numbers[expected.columns].equals(expected)
