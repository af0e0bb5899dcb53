"""How often the classes occur in the paper's two multi-label streams, task by task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TaskProfile:
    """Hold the class frequencies and labels per image of one task's stream; Sec. 5.

    Parameters
    ----------
    class_freq : tuple of int, length C
        Images of each class, in descending order.
    labels_per_image : tuple of int
        Images with 1, 2, 3, ... labels.

    Examples
    --------
    >>> TaskProfile((5, 4, 3), (4, 4)).scaled(1)[1]
    array([4, 4])
    """

    class_freq: tuple[int, ...]
    labels_per_image: tuple[int, ...]

    @property
    def num_classes(self) -> int:
        """Number of classes of the task."""
        return len(self.class_freq)

    def scaled(self, divisor: int, connected: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the profile of a smaller stream of the same shape; Sec. 5, divided.

        Parameters
        ----------
        divisor : int
            How many times smaller.
        connected : bool
            Leave room for a tree of two-label images that joins all classes of the task, as the
            clustering of the classes needs it.

        Returns
        -------
        class_freq : numpy.ndarray of int64, shape (C,)
            The frequencies divided and rounded down, at least 1.
        labels_per_image : numpy.ndarray of int64
            Images with 1, 2, ... labels. From two labels on the counts divided and rounded;
            images with one label make up what is left of the frequencies.

        Raises
        ------
        ValueError
            If the images with several labels need more labels than the frequencies hold.

        Notes
        -----
        Where a small stream has fewer than C - 1 two-label images and `connected` is True, just
        enough pairs of single-label images become two-label ones; the frequencies stay.

        Examples
        --------
        >>> TaskProfile((50, 41, 30), (90, 11, 3)).scaled(10, connected=True)
        (array([5, 4, 3]), array([8, 2, 0]))
        """
        class_freq = np.maximum(1, np.array(self.class_freq, dtype=np.int64) // divisor)
        counts = np.array(self.labels_per_image, dtype=np.int64)
        if connected and len(counts) == 1:
            counts = np.append(counts, 0)
        counts = (2 * counts + divisor) // (2 * divisor)  # rounded, halves upwards
        if connected and self.num_classes > 1:
            counts[1] = max(counts[1], self.num_classes - 1)
        return class_freq, fill_with_singles(class_freq, counts)

    def balanced(self, per_class: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the profile of a test set with equally many images of every class; Sec. 5.1.

        Parameters
        ----------
        per_class : int
            Images of each class.

        Returns
        -------
        class_freq : numpy.ndarray of int64, shape (C,)
            `per_class` in every entry.
        labels_per_image : numpy.ndarray of int64
            Images with 1, 2, ... labels, in the proportions of the stream.

        Examples
        --------
        >>> TaskProfile((5, 4, 3), (4, 4)).balanced(3)
        (array([3, 3, 3]), array([3, 3]))
        """
        class_freq = np.full(self.num_classes, per_class, dtype=np.int64)
        share = class_freq.sum() / sum(self.class_freq)
        counts = np.floor(np.array(self.labels_per_image) * share + 0.5).astype(np.int64)
        return class_freq, fill_with_singles(class_freq, counts)


def fill_with_singles(class_freq: np.ndarray, labels_per_image: np.ndarray) -> np.ndarray:
    """Return the counts with as many single-label images as the frequencies leave; Sec. 5.

    Parameters
    ----------
    class_freq : numpy.ndarray of int64, shape (C,)
        Images of each class.
    labels_per_image : numpy.ndarray of int64
        Images with 1, 2, ... labels; the first entry is replaced.

    Returns
    -------
    numpy.ndarray of int64
        The counts whose labels add up to the frequencies.

    Raises
    ------
    ValueError
        If the other images alone need more labels than there are.

    Examples
    --------
    >>> fill_with_singles(np.array([5, 4]), np.array([0, 3]))
    array([3, 3])
    """
    counts = labels_per_image.copy()
    total = int(class_freq.sum())
    needed = int((counts[1:] * np.arange(2, len(counts) + 1)).sum())
    if needed > total:
        raise ValueError(
            f"expected class frequencies that add up to {needed} or more, as many labels as the "
            f"images with several labels carry, got {total}; take a smaller divisor"
        )
    counts[0] = total - needed
    return counts


# Counted from the released splits of the paper's two data sets, training images only.
COCOSEQ = (
    TaskProfile(
        (
            *(1357, 1180, 1121, 898, 874, 584, 541, 416, 413, 399, 388, 382),
            *(307, 300, 272, 253, 230, 194, 145, 128, 126, 72, 59, 49),
        ),
        (6660, 1251, 323, 102, 25, 4),
    ),
    TaskProfile(
        (
            *(1827, 1319, 1228, 1045, 863, 808, 674, 658, 629, 575, 437, 408),
            *(333, 273, 241, 198, 146, 107),
        ),
        (4839, 2139, 701, 126, 9),
    ),
    TaskProfile(
        (1575, 1420, 1390, 1361, 925, 901, 900, 811, 794, 733, 660, 396, 342, 333),
        (10673, 922, 8),
    ),
    TaskProfile(
        (1743, 1158, 1050, 979, 482, 452, 395, 285, 284, 224, 189, 186, 185, 131),
        (6856, 418, 13, 3),
    ),
)

NUSWIDESEQ = (
    TaskProfile((14453, 2512, 1335, 857, 331), (16198, 1172, 266, 32, 4)),
    TaskProfile((8525, 7983, 6273, 2995, 2009, 1368), (9953, 6406, 1785, 257, 1)),
    TaskProfile(
        (2283, 438, 422, 402, 260, 215, 175, 150, 136, 128, 127, 118, 102, 101, 87, 83),
        (2478, 764, 304, 71, 5),
    ),
    TaskProfile((410, 317, 247, 196, 150, 146, 142, 135, 107, 75, 70, 45), (1815, 108, 3)),
    TaskProfile((1120, 868, 232, 199), (2325, 47)),
    TaskProfile((2724, 2547, 440, 438, 423, 184), (2830, 1780, 114, 6)),
)
