"""The sliders show what a sampler keeps, and every one redraws."""

import pytest

from prslib.report.sliders import MemorySliders
from prslib.report.walkthrough import quotas, skewed_stream


@pytest.fixture(scope="module")
def sliders():
    return MemorySliders(samples=1400, num_classes=12, seed=3)


def test_a_redraw_shows_what_the_sampler_keeps(sliders):
    frame = sliders.redraw(rho=0.5, memory=90, skew=1.2)
    stream = skewed_stream(1400, 12, 1.2, seed=3)
    expected = quotas(stream, 90, [0.5], 3)
    assert frame[expected.columns].equals(expected)
    as_stream = stream.sum(0) / stream.sum() * expected["in_memory"].sum()
    assert frame["stream"].to_numpy() == pytest.approx(as_stream)


def test_every_slider_redraws(sliders):
    row, image = sliders.widget().children
    rho, memory, skew, _ = row.children
    assert memory.value == 1400 * 2 // 35
    for slider, value in ((rho, 0.5), (memory, 200), (skew, 1.8)):
        before = image.value
        slider.value = value
        assert image.value != before
    picture = image.value
    sliders.redraw(0.5, 200, skew.value)
    assert image.value == picture
