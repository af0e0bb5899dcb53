"""Sliders over a long stream: what PRS keeps of it, redrawn at every move."""

import io
import itertools
import time
from functools import lru_cache, partial

import ipywidgets
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.style import context as style_context
from matplotlib.text import Text
from matplotlib.ticker import NullLocator, StrMethodFormatter

from prslib.checks import whole
from prslib.report.style import COLOURS, STYLE
from prslib.report.walkthrough import outside_quota, quotas, skewed_stream

ROWS = [  # a column, its name in the legend, the method with its colour, its mark
    ("stream", "as the stream", "Stream", "-"),
    ("quota", "quota", "CRS", "-"),
    ("in_memory", "in memory", "PRS", "D"),
]


class MemorySliders:
    """Show what PRS keeps of a skewed stream for any rho, memory size and skew (Eq. 1)."""

    def __init__(self, samples: int, num_classes: int = 70, seed: int = 0):
        whole("samples", samples, 200)
        self.samples, self.num_classes, self.seed = samples, num_classes, seed
        self.largest = min(4000, samples // 2)
        self.default_size = (
            samples * 2 // 35
        )  # the paper's share: 2000 for 35,000 samples
        self.image = ipywidgets.Image(format="png", width=900)
        self.numbers = pd.DataFrame()  # the columns of `quotas`, and stream
        self._stream = lru_cache(1)(
            partial(skewed_stream, samples, num_classes, seed=seed)
        )
        with style_context(STYLE):
            self.figure = Figure(figsize=(9, 3.6), dpi=100)
            self._lines, self._text = self._draw_axes()

    def redraw(self, rho: float, memory_size: int, skew: float) -> dict[str, float]:
        """Send the stream through a new sampler, show its memory, return milliseconds by step."""
        clock = [time.perf_counter()]
        labels = self._stream(skew)
        clock.append(time.perf_counter())
        self.numbers = quotas(labels, memory_size, [rho], self.seed)
        share = self.numbers["frequency"] / self.numbers["frequency"].sum()
        self.numbers["stream"] = share * self.numbers["in_memory"].sum()
        clock.append(time.perf_counter())
        self._draw()
        clock.append(time.perf_counter())
        return dict(
            zip(("stream", "sampling", "drawing"), 1000 * np.diff(clock), strict=True)
        )

    def widget(self, rho: float = 0.0, skew: float = 1.0) -> ipywidgets.VBox:
        """Return the sliders above the picture; every move of a slider redraws it."""
        size = {"min": 10, "max": self.largest, "step": max(1, self.largest // 80)}
        ranges = {
            "rho": ipywidgets.FloatSlider(rho, min=-1, max=1.5, step=0.05),
            "memory_size": ipywidgets.IntSlider(self.default_size, **size),
            "skew": ipywidgets.FloatSlider(skew, min=0, max=2, step=0.1),
        }

        def redraw(_change=None):
            self.redraw(**{name: slider.value for name, slider in ranges.items()})

        for name, slider in ranges.items():
            slider.description = name.replace("_", " ")
            slider.style.description_width = "initial"
            slider.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([ipywidgets.HBox(list(ranges.values())), self.image])

    def speed_sentence(self) -> str:
        """Redraw for 27 settings of the sliders and say how long it took."""
        shown = self.numbers
        sizes = (self.default_size // 4, self.default_size, self.largest)
        settings = itertools.product((-0.5, 0.0, 1.0), sizes, (0.5, 1.0, 1.5))
        times = pd.DataFrame([self.redraw(*setting) for setting in settings])
        total, middle = times.sum(axis=1), times.median()
        if len(shown):
            self.numbers = shown
            self._draw()
        return (
            f"{total.median():.0f} ms a redraw of {self.samples:,} samples (median; the "
            f"longest {total.max():.0f} ms): a new stream {middle['stream']:.0f} ms, "
            f"sampling {middle['sampling']:.0f} ms, drawing {middle['drawing']:.0f} ms."
        )

    def _draw_axes(self) -> tuple[list[Line2D], Text]:
        """Draw the axes, which stay; return the lines and the text that change."""
        ax = self.figure.subplots()
        lines = [
            ax.plot([], [], marker, color=COLOURS[method], markersize=4, label=label)[0]
            for _, label, method, marker in ROWS
        ]
        ax.set(
            xlabel="class, by rank in the stream",
            ylabel="labels in memory (log scale)",
            xlim=(0, self.num_classes + 1),
            ylim=(0.7, 2 * self.largest),
            yscale="log",
        )
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        self.figure.draw_without_rendering()  # finds room for the axes, once
        self.figure.set_layout_engine("none")
        return lines, ax.text(0.005, 1.03, "", transform=ax.transAxes)

    def _draw(self) -> None:
        """Draw stream, quotas and memory of every class as a PNG."""
        rank, rows = self.numbers["class"] + 1, self.numbers.replace(0, np.nan)
        for line, (name, *_) in zip(self._lines, ROWS, strict=True):
            line.set_data(rank, rows[name])
        outside = outside_quota(self.numbers)
        text = f"{self.numbers['in_memory'].sum():,} labels, "
        self._text.set_text(f"{text}{outside:.1%} of them not in their quota")
        file = io.BytesIO()
        self.figure.savefig(file, format="png", pil_kwargs={"compress_level": 1})
        self.image.value = file.getvalue()
