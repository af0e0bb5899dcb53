"""The styles of methods, and plots that figures share."""

import numpy as np
import pandas as pd

from prslib.report import style
from prslib.report.style import METHOD_STYLES, styles_of
from prslib.train import METHODS


def test_every_method_has_a_style_of_its_own_also_a_new_one(monkeypatch):
    assert set(METHODS) <= set(METHOD_STYLES)
    assert list(styles_of(reversed(METHODS))) == list(METHODS)
    monkeypatch.setattr(style, "METHOD_STYLES", dict(METHOD_STYLES))
    assert list(styles_of(["MIR", "PRS", "iCaRL"])) == ["PRS", "MIR", "iCaRL"]
    assert len(style.METHOD_STYLES) == len(METHOD_STYLES) + 2
    for field in ("color", "marker"):
        assert len({each[field] for each in style.METHOD_STYLES.values()}) == len(
            style.METHOD_STYLES
        )


def test_the_paper_stands_beside_its_own_images_and_apart_from_stand_ins():
    frame = pd.DataFrame({"dataset": ["cocoseq-mini", "digits49seq", "digits49seq"]})
    frame = frame.assign(value=[50.0, 80.0, np.nan], published=[55.0, 25.0, 25.0])
    shown = style.without_far_numbers(frame)["published"]
    np.testing.assert_array_equal(shown, [55.0, np.nan, 25.0])
