"""Write `memories.html`, the page with sliders: ``python docs/memories.py``.

The page is one file that any browser opens, without a server or an installation. It has
the memory of each sampler at the end of a stream of 2,000 samples, for each place of the
sliders.
"""

import json
from itertools import product
from pathlib import Path

from prslib import previews
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
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Which samples stay in memory?</title>
<style>
:root { color-scheme: light dark; }
body { max-width: 50em; margin: 1em auto; padding: 0 1em; font: 1em/1.5 sans-serif; }
.sliders, .panels { display: grid; gap: 1em; margin: 1em 0; }
.sliders { grid-template-columns: repeat(auto-fit, minmax(15em, 1fr)); }
.panels { grid-template-columns: repeat(auto-fit, minmax(17em, 1fr)); }
.sliders label { display: flex; flex-direction: column; }
.sliders output { font-weight: bold; }
.panels svg { width: 100%; font-size: 12px; }
.shares { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9em; }
td { white-space: nowrap; }
:is(td, th) { padding: 0.2em 0.6em; text-align: right; border-bottom: 1px solid #8888; }
</style>
<h1>Which samples stay in memory?</h1>
<p>A stream has 2,000 samples of 20 classes, and 22 % of them have a second label. Four
samplers fill a small memory from it: reservoir sampling (CRS), partitioning reservoir
sampling (PRS), CBRS and OCDM. The line in each picture is the stream's mix of classes,
scaled to the memory. Imbalance is the number of samples of the largest class divided by
that of the smallest.</p>
<div id="memories"></div>
<ul>
<li>At an imbalance of 100 and rho 0, CRS copies the mix of the stream, whereas PRS, CBRS
and OCDM give the rare classes far more.</li>
<li>At an imbalance of 1 all memories are about the same, so that there is no reason to
balance.</li>
<li>At rho 1, PRS and OCDM follow the stream, as CRS does. Below 0 rare classes get more
than frequent ones, as far as the stream has samples of them.</li>
<li>With only 50 samples in memory, CRS keeps few of the rare classes or none, whereas a
balanced memory keeps two or three of each.</li>
</ul>
<p>The samplers of prslib computed these memories with one seed. For your own labels,
<code>prslib preview labels.csv</code> prints the same table.</p>
<script>const MEMORIES = DATA;
SCRIPT</script>
</html>
"""


def memories(imbalances=IMBALANCES, sizes=SIZES, rhos=RHOS) -> dict:
    """Return the class counts of streams and memories; keys are the sliders' values."""
    streams = {
        value: imbalanced_stream(value, SAMPLES, CLASSES) for value in imbalances
    }
    counts = {}
    for (value, stream), size in product(streams.items(), sizes):
        fixed = previews.preview(stream, size, WITHOUT_RHO).class_counts
        counts |= {f"{name} {value} {size}": row for name, row in fixed.items()}
        for rho in rhos:
            moved = previews.preview(stream, size, WITH_RHO, rho=rho).class_counts
            counts |= {
                f"{name} {value} {size} {rho:g}": row for name, row in moved.items()
            }
    return {
        "sliders": {"imbalance": imbalances, "size": sizes, "rho": rhos},
        "start": START,
        "samplers": {"CRS": False, "PRS": True, "CBRS": False, "OCDM": True},
        "stream": {value: rows.sum(axis=0).tolist() for value, rows in streams.items()},
        "memory": {key: row.tolist() for key, row in counts.items()},
    }


def write_page() -> str:
    """Return the page, with its data and its script inside."""
    data = json.dumps(memories(), separators=(",", ":"))
    script = (DOCS / "memories.js").read_text("utf-8")
    return PAGE.replace("DATA", data).replace("SCRIPT", script)


if __name__ == "__main__":
    (DOCS / "memories.html").write_text(write_page(), encoding="utf-8")
