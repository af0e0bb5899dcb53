"""Sliders over a compiled sampler: quota and memory redrawn while a slider moves."""

import io
import itertools
import time

import ipywidgets
import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from PIL import Image

from prslib.checks import whole
from prslib.plots import STYLE
from prslib.report.style import COLOURS
from prslib.report.walkthrough import quotas, skewed_stream


class LiveMemory:
    """Show what PRS keeps of a skewed stream for any rho, memory size and skew (Eq. 1).

    Parameters
    ----------
    samples : int
        Length of the stream, at least 200.
    num_classes : int
        Number of classes C, 70 as in COCOseq.
    seed : int
        Of the stream and of the sampler.

    Attributes
    ----------
    image : ipywidgets.Image
        The picture, replaced by every redraw.
    usual_size : int
        The memory size of the paper's share, 2000 for 35 000 samples.
    numbers : DataFrame
        What the picture shows: columns as `prslib.report.walkthrough.quotas` gives them, and stream
        (the class's share of the stream, times the labels in memory).

    Raises
    ------
    ValueError, TypeError
        If a number is too small or no integer.

    Notes
    -----
    The axes are drawn once and kept as pixels; a redraw puts three artists and a line of text on
    top of them. That takes some milliseconds where drawing the whole figure would take longer than
    sampling does, and it is why the axes keep their limits.

    Example
    -------
    >>> sorted(LiveMemory(samples=200).redraw(rho=0.0, memory_size=20, skew=1.0))
    ['drawing', 'sampling', 'stream']
    """

    def __init__(self, samples: int, num_classes: int = 70, seed: int = 0):
        whole("samples", samples, 200)
        whole("num_classes", num_classes, 1)
        self.samples, self.num_classes, self.seed = samples, num_classes, seed
        self.largest = min(4000, samples // 2)
        self.usual_size = samples * 2 // 35
        self.image = ipywidgets.Image(format="png", width=900)
        self.numbers = pd.DataFrame()
        self._stream: tuple[float, np.ndarray] | None = None
        with style.context(STYLE):
            self._draw_axes()

    def redraw(self, rho: float, memory_size: int, skew: float) -> dict[str, float]:
        """Send the stream through a new sampler and show what it kept.

        Parameters
        ----------
        rho : float
            Power of allocation.
        memory_size : int
            Capacity of the memory m, in samples.
        skew : float
            Of the stream, see `prslib.report.walkthrough.skewed_stream`.

        Returns
        -------
        dict
            Milliseconds spent on the "stream" (0 where its skew is the last one's), on "sampling"
            and on "drawing".
        """
        clock = [time.perf_counter()]
        if self._stream is None or self._stream[0] != skew:
            labels = skewed_stream(self.samples, self.num_classes, skew, seed=self.seed)
            self._stream = skew, labels
        clock.append(time.perf_counter())
        self.numbers = quotas(self._stream[1], memory_size, [rho], self.seed)
        share = self.numbers["frequency"] / self.numbers["frequency"].sum()
        self.numbers["stream"] = share * self.numbers["in_memory"].sum()
        clock.append(time.perf_counter())
        self._draw()
        clock.append(time.perf_counter())
        return dict(zip(("stream", "sampling", "drawing"), 1000 * np.diff(clock), strict=True))

    def widget(self, rho: float = 0.0, skew: float = 1.0) -> ipywidgets.VBox:
        """Return the sliders above the picture; every move of a slider redraws it.

        Parameters
        ----------
        rho, skew : float
            Where their sliders start; the memory starts at ``usual_size``.

        Returns
        -------
        ipywidgets.VBox
            For JupyterLab to display.
        """
        size = {"min": 10, "max": self.largest, "step": max(1, self.largest // 80)}
        ranges = {
            "rho": ipywidgets.FloatSlider(rho, min=-1, max=1.5, step=0.05),
            "memory_size": ipywidgets.IntSlider(self.usual_size, **size),
            "skew": ipywidgets.FloatSlider(skew, min=0, max=2, step=0.1),
        }
        for name, slider in ranges.items():
            slider.description = name.replace("_", " ")
            slider.style.description_width = "initial"
            slider.observe(
                lambda _: self.redraw(**{name: s.value for name, s in ranges.items()}), "value"
            )
        self.redraw(**{name: slider.value for name, slider in ranges.items()})
        return ipywidgets.VBox([ipywidgets.HBox(list(ranges.values())), self.image])

    def tell_speed(self) -> str:
        """Redraw for 27 places of the sliders and say how long it took.

        Returns
        -------
        str
            Markdown: median and longest time of a redraw in milliseconds, and its parts.
        """
        shown = self.numbers
        sizes = (self.usual_size // 4, self.usual_size, self.largest)
        places = itertools.product((-0.5, 0.0, 1.0), sizes, (0.5, 1.0, 1.5))
        times = pd.DataFrame([self.redraw(*place) for place in places])
        whole_redraw, middle = times.sum(axis=1), times.median()
        if len(shown):
            self.numbers = shown
            self._draw()
        return (
            f"{whole_redraw.median():.0f} ms a redraw of {self.samples:,} samples (median; the "
            f"longest {whole_redraw.max():.0f} ms): a new stream {middle['stream']:.0f} ms, "
            f"sampling {middle['sampling']:.0f} ms, drawing {middle['drawing']:.0f} ms."
        )

    def _draw_axes(self) -> None:
        figure = Figure(figsize=(9, 3.6), dpi=100)
        self._canvas = FigureCanvasAgg(figure)
        ax = self._ax = figure.subplots()
        ax.set(xlabel="class, by rank in the stream", ylabel="labels in memory (log scale)")
        ax.set(xlim=(0, self.num_classes + 1), ylim=(0.7, 2 * self.largest), yscale="log")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        moving = {"animated": True}
        self._artists = [
            *ax.plot(
                [], [], color=COLOURS["Stream"], linewidth=1.5, label="as the stream", **moving
            ),
            *ax.plot([], [], color=COLOURS["CRS"], linewidth=1.8, label="quota", **moving),
            *ax.plot([], [], "D", color=COLOURS["PRS"], markersize=4, label="in memory", **moving),
        ]
        self._text = ax.text(0.005, 1.03, "", transform=ax.transAxes, **moving)
        legend = ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        for handle in legend.get_lines():
            handle.set_animated(False)
        self._canvas.draw()
        figure.set_layout_engine("none")
        self._background = self._canvas.copy_from_bbox(figure.bbox)

    def _draw(self) -> None:
        rank, held = self.numbers["class"] + 1, self.numbers["in_memory"]
        self._canvas.restore_region(self._background)
        for artist, name in zip(self._artists, ("stream", "quota", "in_memory"), strict=True):
            artist.set_data(rank, self.numbers[name].replace(0, np.nan))
            self._ax.draw_artist(artist)
        away = (held - self.numbers["quota"]).abs().sum() / 2 / held.sum()
        self._text.set_text(f"{held.sum():,} labels, {away:.1%} of them not in their quota")
        self._ax.draw_artist(self._text)
        file = io.BytesIO()
        Image.fromarray(np.asarray(self._canvas.buffer_rgba())).save(file, "png", compress_level=1)
        self.image.value = file.getvalue()
