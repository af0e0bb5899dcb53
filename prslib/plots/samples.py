"""A sheet of sample images."""

import textwrap

import numpy as np
from matplotlib.axes import Axes


def plot_sample(image: np.ndarray, labels: str, ax: Axes) -> Axes:
    """Draw one image with its labels below (Figure "COCOseq").

    Parameters
    ----------
    image : ndarray of uint8, (H, W, channels)
        Pixels; one channel is drawn in grey.
    labels : str
        The names of its classes.
    ax : Axes
        Where to draw.

    Returns
    -------
    Axes
        Without ticks.
    """
    ax.imshow(image.squeeze(), cmap="gray", vmin=0, vmax=255)
    ax.set_xlabel("\n".join(textwrap.wrap(labels, 18)), fontsize=7, labelpad=2)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    return ax
