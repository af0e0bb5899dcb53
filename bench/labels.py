"""Measure the cost of each form of labels: microseconds of `place` for a batch of 10.

Run ``python bench/labels.py``; it writes figures/bench/labels.csv. Samples have one of 70
classes, and the memory of 2,000 is full. All forms contain the same labels, so that the
decisions are the same, and are measured in turn. Times are CPU times of one thread,
because the machine may be busy.
"""

import time

import numpy as np
import pandas as pd
from shared import parser, show, write

from prslib.samplers import make_sampler

SIZE, CLASSES, BATCH = 2000, 70, 10
BATCHES, REPETITIONS = 500, 21
METHODS = {"CRS": "crs", "PRS": "prs"}
FORMS = {
    "bool rows": lambda rows: rows,
    "uint8 rows of 0 and 1": lambda rows: rows.astype(np.uint8),
    "class numbers": lambda rows: rows.argmax(axis=1),
    "DataFrame of 0 and 1": lambda rows: pd.DataFrame(rows.astype(int)),
}


def time_form(form: str, method: str, stream: np.ndarray) -> float:
    """Return microseconds per batch with a full memory."""
    sampler = make_sampler(METHODS[method], SIZE, CLASSES, 0)
    sampler.place(stream[:SIZE])
    pieces = stream[SIZE:].reshape(BATCHES, BATCH, CLASSES)
    batches = [FORMS[form](piece) for piece in pieces]
    start = time.process_time()
    for batch in batches:
        sampler.place(batch)
    return 1e6 * (time.process_time() - start) / BATCHES


def main() -> None:
    """Measure, print the table and write it."""
    parser(__doc__).parse_args()
    rng = np.random.default_rng(0)
    numbers = rng.choice(CLASSES, SIZE + BATCHES * BATCH)
    stream = np.arange(CLASSES) == numbers[:, None]
    rows = []
    for method in METHODS:
        times = {form: [] for form in FORMS}
        for _ in range(REPETITIONS + 1):
            for form in FORMS:
                times[form].append(time_form(form, method, stream))
        for form in FORMS:
            measured = np.array(times[form][1:])  # the first one may compile
            row = {"sampler": method, "labels": form, "us": np.median(measured)}
            rows.append(row | {"lowest": measured.min(), "highest": measured.max()})
    table = pd.DataFrame(rows)
    show(table, REPETITIONS)
    write(table, "labels", float_format="%.4g")


if __name__ == "__main__":
    main()
