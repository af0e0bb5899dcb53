"""Renew the numbers in `memories.html`, the page with sliders: ``python docs/memories.py``.

The page is one file that any browser opens, without a server or an installation. It
contains the memory of each sampler at the end of a stream of 2,000 samples, for each
position of the sliders.
"""

import json
import re
from itertools import product
from pathlib import Path

from prslib import previews
from prslib.paths import replacing
from prslib.report.measures import imbalanced_stream

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


def memories() -> dict:
    """Return the class counts of streams and memories; keys are the sliders' values."""
    streams = {
        value: imbalanced_stream(value, SAMPLES, CLASSES) for value in IMBALANCES
    }
    counts = {}
    for (value, stream), size in product(streams.items(), SIZES):
        at = f"{value} {size}"
        fixed = previews.preview(stream, size, WITHOUT_RHO).class_counts
        counts |= {f"{name} {at}": row for name, row in fixed.items()}
        for rho in RHOS:
            moved = previews.preview(stream, size, WITH_RHO, rho=rho).class_counts
            counts |= {f"{name} {at} {rho:g}": row for name, row in moved.items()}
    return {
        "sliders": {"imbalance": IMBALANCES, "size": SIZES, "rho": RHOS},
        "start": START,
        "samplers": {"CRS": False, "PRS": True, "CBRS": False, "OCDM": True},
        "stream": {value: rows.sum(axis=0).tolist() for value, rows in streams.items()},
        "memory": {key: row.tolist() for key, row in counts.items()},
    }


def renew_page() -> str:
    """Return the page with newly computed memories."""
    data = json.dumps(memories(), separators=(",", ":"))
    return DATA.sub(f"const MEMORIES = {data};", FILE.read_text("utf-8"))


if __name__ == "__main__":
    text = renew_page()
    with replacing(FILE) as opened:
        opened.write(text.encode())
