"""Sliders over a long stream: what PRS keeps of it, redrawn at every move."""

import io
import itertools
import time
from functools import lru_cache, partial

import ipywidgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.style import context as style_context
from matplotlib.ticker import NullLocator

from prslib.checks import whole
from prslib.report.style import COLOURS, STYLE
from prslib.report.walkthrough import (
    outside_quota,
    quotas,
    rank_by_count,
    skewed_stream,
)


class MemorySliders:
    """Show what PRS keeps of a skewed stream for any rho, memory size and skew (Eq. 1)."""

    def __init__(self, samples: int, num_classes: int = 70, seed: int = 0):
        whole("samples", samples, 200)
        self.samples, self.num_classes, self.seed = samples, num_classes, seed
        self.largest = min(4000, samples // 2)
        # the paper's share: 2000 for 35,000 samples
        self.default_size = samples * 2 // 35
        self.image = ipywidgets.Image(format="png", width=900)
        self.stream = lru_cache(1)(partial(skewed_stream, samples, num_classes))
        with style_context(STYLE):
            self.figure = Figure(figsize=(9, 3.6), dpi=100)
            self.lines = self._draw_axes(self.figure.subplots())

    def _draw_axes(self, ax: Axes) -> dict[str, Line2D]:
        """Draw the axes, which stay; return the lines, which a redraw moves."""
        lines = {
            "stream": ax.plot([], color=COLOURS["Stream"], label="as the stream"),
            "quota": ax.plot([], color=COLOURS["CRS"], label="quota"),
            "in_memory": ax.plot(
                [], "D", color=COLOURS["PRS"], label="in memory", ms=4
            ),
        }
        rank_by_count(ax)
        ax.set(xlim=(0, self.num_classes + 1), ylim=(0.7, 2 * self.largest))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        self.figure.draw_without_rendering()  # finds room for the axes, once
        self.figure.set_layout_engine("none")
        return {name: line for name, (line,) in lines.items()}

    def redraw(self, rho: float, memory_size: int, skew: float) -> pd.DataFrame:
        """Send the stream through a new sampler, show its memory, return its numbers."""
        labels = self.stream(skew, seed=self.seed)
        frame = quotas(labels, memory_size, [rho], self.seed)
        share = frame["frequency"] / frame["frequency"].sum()
        frame["stream"] = share * frame["in_memory"].sum()
        for name, line in self.lines.items():
            line.set_data(frame["class"] + 1, frame[name].replace(0, np.nan))
        outside = f"{outside_quota(frame):.1%} of them not in their quota"
        said = f"{frame['in_memory'].sum():,} labels, {outside}"
        self.figure.axes[0].set_title(said, loc="left")
        file = io.BytesIO()
        self.figure.savefig(file, format="png", pil_kwargs={"compress_level": 1})
        self.image.value = file.getvalue()
        return frame

    def widget(self, rho: float = 0.0, skew: float = 1.0) -> ipywidgets.VBox:
        """Return the sliders above the picture; every move of a slider redraws it."""
        size = {"min": 10, "max": self.largest, "step": max(1, self.largest // 80)}
        ranges = {
            "rho": ipywidgets.FloatSlider(rho, min=-1, max=1.5, step=0.05),
            "memory_size": ipywidgets.IntSlider(self.default_size, **size),
            "skew": ipywidgets.FloatSlider(skew, min=0, max=2, step=0.1),
        }

        def redraw(_change: object = None) -> None:
            self.redraw(**{name: slider.value for name, slider in ranges.items()})

        for name, slider in ranges.items():
            slider.description = name.replace("_", " ")
            slider.style.description_width = "initial"
            slider.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([ipywidgets.HBox(list(ranges.values())), self.image])

    def speed_sentence(self) -> str:
        """Redraw for 27 settings of the sliders and say how long it took."""
        picture, times = self.image.value, []
        sizes = (self.default_size // 4, self.default_size, self.largest)
        for setting in itertools.product((-0.5, 0.0, 1.0), sizes, (0.5, 1.0, 1.5)):
            start = time.perf_counter()
            self.redraw(*setting)
            times.append(1000 * (time.perf_counter() - start))
        self.image.value = picture
        return (
            f"{np.median(times):.0f} ms a redraw of {self.samples:,} samples (median; "
            f"the longest {max(times):.0f} ms)."
        )
