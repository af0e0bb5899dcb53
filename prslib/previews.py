"""Preview which classes of a stream memories would keep, without training."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from prslib.checks import check_names, expected, one_line
from prslib.datasets.curation import SMALL, groups_by_mean
from prslib.label_files import read_labels
from prslib.labels import multi_hot
from prslib.samplers import SAMPLERS, Sampler, make_sampler
from prslib.samplers.prs import partition

# samplers that need only labels
BY_LABELS = tuple(name for name, sampler in SAMPLERS.items() if not sampler.needs)
BATCH = 10  # samples per call of `place`, as in the paper
NONE_SMALL = (
    "No class is smaller than half the mean class size: use CRS,\n"
    "because a balanced memory has little to gain."
)
MOST_NAMES = 80  # on the axis of a picture
FEW = 0.12  # largest share of small classes in the stream reutersseq-cap30
SMALL_CLASSES = "Classes smaller than half the mean class size: {small} of {classes}.\n"
FEW_SMALL = (
    "With so few of them, CBRS and CRS differed by less than 2 points: use CRS.\n"
    "Only one such stream was tested; a trial measures the gain on yours."
)
KEEPS_ALL = (
    "This memory can keep the whole stream, with every sampler: choose a smaller size."
)
SOME_SMALL = (
    "For mAP or C-F1, use CBRS, above all if the test has equally frequent classes.\n"
    "For O-F1 on a test with the class mix of the stream, use CRS.\n"
    "The labels do not show how large the gain is; a trial measures it."
)


@dataclass(frozen=True, eq=False)
class Preview:
    """Content of each sampler's memory at the end of a stream.

    Its text is a table by class and by group, followed by a recommendation.

    Attributes
    ----------
    size : int
        Capacity of the memories, in samples.
    class_names : tuple of str
        Names of the classes.
    class_group : tuple of str
        Group of each class: "minority" below half the mean class size, "majority"
        from twice the mean class size, else "moderate".
    class_freq : ndarray of int64 of shape (n_classes,)
        Samples of each class in the stream, n_i.
    quota : ndarray of float64 of shape (n_classes,)
        Quota of each class in the memory, m_i of Eq. (1).
    class_counts : dict of str to ndarray of int64 of shape (n_classes,)
        Samples of each class in the memory of each sampler, l_i.
    samples : int
        Samples in the stream.
    unlabelled : int
        Samples without a label.
    """

    size: int
    class_names: tuple[str, ...]
    class_group: tuple[str, ...]
    class_freq: np.ndarray
    quota: np.ndarray
    class_counts: dict[str, np.ndarray]
    samples: int
    unlabelled: int

    @property
    def imbalance(self) -> float:
        """Ratio of the largest to the smallest class size."""
        found = self.class_freq[self.class_freq > 0]
        return float(found.max() / found.min())

    @property
    def ratio(self) -> np.ndarray:
        """Ratio of each class size to the mean class size, float64 (C,)."""
        return self.class_freq / self.class_freq[self.class_freq > 0].mean()

    @property
    def advice(self) -> str:
        """Recommendation of the report for such class sizes, by score and test."""
        if self.size >= self.samples:
            return KEEPS_ALL
        small = int((self.ratio < SMALL).sum())
        if not small:
            return NONE_SMALL
        classes = len(self.ratio)
        text = FEW_SMALL if small <= FEW * classes else SOME_SMALL
        return SMALL_CLASSES.format(small=small, classes=classes) + text

    @property
    def table(self) -> dict[str, list]:
        """Columns of a data frame with one row per class, the most frequent first."""
        order = np.argsort(-self.class_freq, kind="stable")
        columns = {
            "class": np.array(self.class_names, dtype=object),
            "group": np.array(self.class_group, dtype=object),
            "stream": self.class_freq,
            "of mean": self.ratio,
            "quota": self.quota,
            **self.class_counts,
        }
        return {name: values[order].tolist() for name, values in columns.items()}

    def plot(self, ax: Any = None) -> Any:
        """Plot the columns of the table over the classes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on, by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        import pandas as pd

        columns = ["stream", "quota", *self.class_counts]
        markers = islice(cycle("os^vDX"), len(self.class_counts))
        frame = pd.DataFrame(self.table).set_index("class")[columns]
        every = 1 + len(frame) // MOST_NAMES
        return frame.plot(
            ax=ax,
            figsize=(10, 5) if ax is None else None,
            style=["-", ":", *markers],
            fillstyle="none",
            logy="sym",  # a class may have no sample in memory
            xticks=range(0, len(frame), every),
            rot=90,
            ylabel="samples",
        )

    def __str__(self) -> str:
        """Return the table by class and by group, and the recommendation."""
        table = self.table
        groups = np.array(table["group"])
        rows = [list(table), *zip(*table.values(), strict=True)]
        for group in dict.fromkeys(table["group"]):
            sums = {"class": f"all {group}", "group": group, "of mean": ""}
            for name in table.keys() - sums.keys():
                sums[name] = np.array(table[name])[groups == group].sum()
            rows.append([sums[name] for name in table])
        cells = [list(map(write_cell, row)) for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            f"{self.samples} samples, {self.unlabelled} of them without a label; memory "
            f"of {self.size}; largest class over smallest {self.imbalance:.0f}:1"
        ]
        for name, group, *numbers in cells:
            line = [name.ljust(widths[0]), group.ljust(widths[1])]
            line += map(str.rjust, numbers, widths[2:])
            lines.append("  ".join(line))
        return "\n".join([*lines, self.advice])


def preview(
    labels: Any,
    size: int,
    methods: Sequence[str] = BY_LABELS,
    *,
    rho: float = 0.0,
    seed: int = 0,
    class_names: Sequence[str] | None = None,
) -> Preview:
    """Simulate which classes each sampler keeps from a stream (Algorithm 1).

    What a memory contains does not depend on a network, so nothing is trained.

    Parameters
    ----------
    labels : array, tensor, data frame, sparse matrix, str or Path
        Labels in the order of the stream, in a form that `Sampler.place` accepts: rows
        of 0 and 1 of shape (n_samples, n_classes), or class numbers of shape
        (n_samples,). Or a file of labels, such as "labels.csv".
    size : int
        Capacity of the memories, in samples.
    methods : sequence of str
        Keys of ``SAMPLERS`` whose decisions depend on labels only.
    rho : float
        Power of allocation of PRS and OCDM.
    seed : int
        Seed of each sampler.
    class_names : sequence of str, optional
        Names of the classes, by default the columns of a data frame or file, or numbers.

    Returns
    -------
    Preview
        Counts by class. The text of the preview is a table, ``table`` contains the
        columns of a data frame, and ``plot(ax)`` plots them.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the labels are invalid, no sample has a label, names are repeated or do not
        match the classes in number, a method is unknown or needs more than labels, or a
        number is out of range.

    See Also
    --------
    trial : Train a network on the stream to see how much a sampler gains.

    Examples
    --------
    >>> rare = np.arange(1000) % 50 == 0
    >>> print(preview(np.stack([~rare, rare], axis=1), size=20, methods=["crs", "prs"]))
    1000 samples, 0 of them without a label; memory of 20; largest class over smallest 49:1
    class         group     stream  of mean  quota  crs  prs
    0             moderate     980      2.0   10.0   19   11
    1             minority      20     0.04   10.0    1    9
    all moderate  moderate     980            10.0   19   11
    all minority  minority      20            10.0    1    9
    Classes smaller than half the mean class size: 1 of 2.
    For mAP or C-F1, use CBRS, above all if the test has equally frequent classes.
    For O-F1 on a test with the class mix of the stream, use CRS.
    The labels do not show how large the gain is; a trial measures it.
    """
    if isinstance(labels, str | Path):
        labels, file_names = read_labels(labels)
        class_names = file_names if class_names is None else class_names
    rows, names = read_rows(labels, class_names)
    class_freq = rows.sum(axis=0)
    counts = {}
    for method in methods:
        options = {"rho": rho} if method.lower() in ("prs", "ocdm") else {}
        sampler = make_sampler(method, size, rows.shape[1], seed, **options)
        if sampler.needs:
            raise ValueError(expected("a sampler that needs only labels", method))
        counts[method] = count_kept(sampler, rows)
    return Preview(
        size=size,
        class_names=tuple(names),
        class_group=groups_by_mean(class_freq),
        class_freq=class_freq,
        quota=size * partition(class_freq, rho).astype(np.float64),
        class_counts=counts,
        samples=len(rows),
        unlabelled=int((~rows.any(axis=1)).sum()),
    )


def read_rows(
    labels: Any, class_names: Sequence[str] | None
) -> tuple[np.ndarray, list[str]]:
    """Return labels as rows, bool (N, C), and the names of the C classes."""
    rows = multi_hot(labels, None if class_names is None else len(class_names))
    named: Any = class_names
    if class_names is None:
        named = getattr(labels, "columns", range(rows.shape[1]))
    names = list(map(one_line, check_names(named)))
    if not rows.any():
        raise ValueError(f"labels: {expected('a sample with a label', 'none')}")
    return rows, names


def count_kept(sampler: Sampler, rows: np.ndarray) -> np.ndarray:
    """Return l_i after a stream."""
    with warnings.catch_warnings():  # the preview counts samples without a label
        warnings.simplefilter("ignore", UserWarning)
        for start in range(0, len(rows), BATCH):
            sampler.place(rows[start : start + BATCH])
    return sampler.class_counts


def write_cell(value: Any) -> str:
    """Return the text of a cell; numbers below 0.1 have two decimals."""
    if isinstance(value, float):
        return f"{value:.1f}" if value >= 0.1 or not value else f"{value:.2f}"
    return one_line(value)
