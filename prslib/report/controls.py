"""Sliders and menus above a picture of a notebook."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
from IPython.display import DisplayHandle, Image
from ipywidgets import HBox, Layout, ValueWidget
from matplotlib.figure import Figure

from prslib.report.notebook import describe, render

Controls = Mapping[str, ValueWidget]  # by the parameters that they set


def lay_out(controls: Controls) -> HBox:
    """Return controls side by side, each with its name."""
    for name, control in controls.items():
        control.set_trait("description", name.replace("_", " "))
        control.set_trait("style", {"description_width": "initial"})
    return HBox(list(controls.values()), layout=Layout(flex_flow="row wrap"))


def follow(
    controls: Controls, redraw: Callable[..., Figure], shown: DisplayHandle
) -> None:
    """Draw a displayed picture anew whenever a control moves.

    It is a plain picture and no widget, so that the last one stays in a closed notebook.
    """

    def update(_change: object) -> None:
        figure = redraw(**{name: control.value for name, control in controls.items()})
        width = round(figure.get_figwidth() * figure.dpi)
        about = {"alt": describe(figure), "width": width}
        shown.update(Image(render(figure), metadata=about))
        plt.close(figure)

    for control in controls.values():
        control.observe(update, "value")
