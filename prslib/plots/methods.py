"""How a method looks: the same colour, marker and order in every figure."""

from collections.abc import Iterable

# colours of Okabe and Ito, which the colour-blind can tell apart
COLOURS = {
    "Stream": "#999999",
    "Multitask": "#666666",
    "Finetune": "#000000",
    "CRS": "#0072B2",
    "PRS": "#D55E00",
}
MARKERS = {"Stream": "", "Multitask": "s", "Finetune": "X", "CRS": "o", "PRS": "D"}


def in_order(methods: Iterable[str]) -> list[str]:
    """Return the methods, each once, in the order of the paper's main table."""
    present = set(methods)
    return [name for name in COLOURS if name in present]
