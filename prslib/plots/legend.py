"""One legend for several axes."""

from matplotlib.figure import Figure


def share_legend(figure: Figure, columns: int | None = None) -> None:
    """Put one legend below all axes of a figure, in place of each axes' own.

    Parameters
    ----------
    figure : Figure
        Its axes have legends; entries of the same name are shown once.
    columns : int, optional
        Entries in a row, by default all of them.
    """
    entries = {}
    for ax in figure.axes:
        handles, names = ax.get_legend_handles_labels()
        legend = ax.get_legend()
        if legend is not None:
            handles, names = legend.legend_handles, [text.get_text() for text in legend.texts]
            legend.remove()
        entries |= dict(zip(names, handles, strict=True))
    place = {"loc": "outside lower center", "ncols": columns or len(entries)}
    figure.legend(entries.values(), entries.keys(), **place)
