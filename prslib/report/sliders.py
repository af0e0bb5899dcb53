"""Sliders over a long stream: what PRS keeps of it, redrawn at every move."""

import io

import ipywidgets
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.style import context as style_context

from prslib.checks import whole
from prslib.report import walkthrough
from prslib.report.style import LOOKS, STYLE

# the axes have a fixed place: finding one takes as long as drawing them
LOOK = [STYLE, {"figure.constrained_layout.use": False}]
PLACE = (0.08, 0.14, 0.91, 0.75)
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1)}  # where the legend goes


class MemorySliders:
    """Show what PRS keeps of a skewed stream for any rho, size of the memory and skew (Eq. 1)."""

    def __init__(self, samples: int, num_classes: int = 70, seed: int = 0):
        self.samples = whole("samples", samples, 200)
        self.num_classes, self.seed = num_classes, seed
        self.largest = min(4000, samples // 2)
        # the paper's share: 2000 for 35,000 samples
        self.default_size = samples * 2 // 35
        self.image = ipywidgets.Image(format="png", width=900)

    def redraw(self, rho: float, memory: int, skew: float) -> pd.DataFrame:
        """Send the stream through a new sampler, show its memory, return its numbers."""
        labels = walkthrough.skewed_stream(
            self.samples, self.num_classes, skew, seed=self.seed
        )
        frame = walkthrough.quotas(labels, memory, [rho], self.seed)
        share = frame["frequency"] / frame["frequency"].sum()
        frame["stream"] = share * frame["in_memory"].sum()
        outside = f"{walkthrough.outside_quota(frame):.1%} of them not in their quota"
        file = io.BytesIO()
        with style_context(LOOK):
            figure = Figure(figsize=(9, 3.6))
            ax = walkthrough.plot_quotas(frame, figure.add_axes(PLACE), letters=False)
            ax.plot(frame["class"] + 1, frame["stream"], **LOOKS["Stream"])
            names = ["quota", "in memory", "as the stream"]
            ax.legend(ax.lines, names, ncols=3, **ABOVE)
            ax.set_title(f"{frame['in_memory'].sum():,} labels, {outside}")
            ax.set_ylim(0.7, 2 * self.largest)
            ax.minorticks_off()
            figure.savefig(file, dpi=100)
        self.image.value = file.getvalue()
        return frame

    def widget(self, rho: float = 0.0, skew: float = 1.0) -> ipywidgets.VBox:
        """Return the sliders above the picture; every move of a slider redraws it."""
        size = {"min": 10, "max": self.largest, "step": max(1, self.largest // 80)}
        sliders = ipywidgets.interactive(
            self.redraw,
            rho=ipywidgets.FloatSlider(rho, min=-1, max=1.5, step=0.05),
            memory=ipywidgets.IntSlider(self.default_size, **size),
            skew=ipywidgets.FloatSlider(skew, min=0, max=2, step=0.1),
        )
        return ipywidgets.VBox([ipywidgets.HBox(sliders.children), self.image])
