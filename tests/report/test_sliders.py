"""The sliders show what a sampler holds, and every one redraws."""

import numpy as np
import pytest

from prslib.report.sliders import MemorySliders
from prslib.report.walkthrough import quotas, skewed_stream


@pytest.fixture(scope="module")
def sliders():
    return MemorySliders(samples=1400, num_classes=12, seed=3)


def test_a_redraw_shows_what_the_sampler_holds(sliders):
    frame = sliders.redraw(rho=0.5, memory_size=90, skew=1.2)
    stream = skewed_stream(1400, 12, 1.2, seed=3)
    expected = quotas(stream, 90, [0.5], 3)
    assert frame[expected.columns].equals(expected)
    as_stream = stream.sum(0) / stream.sum() * expected["in_memory"].sum()
    assert frame["stream"].to_numpy() == pytest.approx(as_stream)
    for name, line in sliders.lines.items():
        shown = np.nan_to_num(line.get_ydata())  # no place for 0 on a log scale
        assert shown == pytest.approx(frame[name])


def test_every_slider_redraws_and_measuring_leaves_the_picture(sliders):
    box = sliders.widget()
    rho, memory_size, skew = box.children[0].children
    assert box.children[1] is sliders.image
    assert memory_size.value == 1400 * 2 // 35
    for slider, value in ((rho, 0.5), (memory_size, 200), (skew, 1.8)):
        before = sliders.image.value
        slider.value = value
        assert sliders.image.value != before
    picture = sliders.image.value
    assert "ms a redraw of 1,400 samples" in sliders.speed_sentence()
    assert sliders.image.value == picture
    sliders.redraw(0.5, 200, skew.value)
    assert sliders.image.value == picture


def test_a_stream_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="samples must be at least 200"):
        MemorySliders(samples=100)
