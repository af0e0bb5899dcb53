"""Renew the numbers in `memories.html`, the page with sliders: ``python docs/memories.py``.

The page is one file that any browser opens, without a server or an installation. It
contains the memory of each sampler at the end of a stream of 2,000 samples, for each
position of the sliders.
"""

import json
import re
from pathlib import Path

import numpy as np

from prslib import preview
from prslib.paths import replacing
from prslib.report.measures import draw_labels

DOCS = Path(__file__).parent
SAMPLES = 2000
CLASSES = 20
IMBALANCES = (1, 3, 10, 30, 100, 300)
SIZES = (50, 100, 200, 400)
RHOS = (-1.0, -0.5, 0.0, 0.25, 0.5, 1.0)
WITHOUT_RHO = ("CRS", "CBRS")
WITH_RHO = ("PRS", "OCDM")
START = {"imbalance": 100, "size": 200, "rho": 0.0}  # as in the page's text
FILE = DOCS / "memories.html"
DATA = re.compile(r"const MEMORIES = .*;")


def draw_stream(imbalance: float) -> np.ndarray:
    """Draw labels; each class is less probable than the one before by the same factor."""
    step = np.arange(CLASSES) / (CLASSES - 1)
    return draw_labels(float(imbalance) ** -step, SAMPLES)


def compute_memories() -> dict:
    """Return the class counts of streams and memories; keys are the sliders' values."""
    streams, memories = {}, {}
    for imbalance in IMBALANCES:
        stream = draw_stream(imbalance)
        streams[imbalance] = stream.sum(axis=0).tolist()
        for size in SIZES:
            fixed = preview(stream, size, WITHOUT_RHO).class_counts
            for name, counts in fixed.items():
                memories[f"{name} {imbalance} {size}"] = counts.tolist()
            for rho in RHOS:
                moved = preview(stream, size, WITH_RHO, rho=rho).class_counts
                for name, counts in moved.items():
                    memories[f"{name} {imbalance} {size} {rho:g}"] = counts.tolist()
    return {
        "sliders": {"imbalance": IMBALANCES, "size": SIZES, "rho": RHOS},
        "start": START,
        "samplers": {"CRS": False, "PRS": True, "CBRS": False, "OCDM": True},
        "stream": streams,
        "memory": memories,
    }


if __name__ == "__main__":
    data = json.dumps(compute_memories(), separators=(",", ":"))
    text = DATA.sub(f"const MEMORIES = {data};", FILE.read_text("utf-8"))
    with replacing(FILE) as opened:
        opened.write(text.encode())
