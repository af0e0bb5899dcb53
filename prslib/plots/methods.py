"""How a method looks: the same colour, marker and order in every figure."""

from collections.abc import Iterable

# colours of Okabe and Ito, which the colour-blind can tell apart, and two greys; the paper's rows
# in its order, then later methods
COLOURS = {
    "Stream": "#999999",
    "Multitask": "#666666",
    "Finetune": "#000000",
    "EWC": "#F0E442",
    "CRS": "#0072B2",
    "GSS": "#009E73",
    "ExStream": "#CC79A7",
    "PRS": "#D55E00",
    "CBRS": "#56B4E9",
    "OCDM": "#E69F00",
}
INK = COLOURS | {"EWC": "#A39400"}  # of lines and marks, for which the yellow is too pale
MARKERS = {
    "Stream": "",
    "Multitask": "s",
    "Finetune": "X",
    "EWC": "v",
    "CRS": "o",
    "GSS": "^",
    "ExStream": "P",
    "PRS": "D",
    "CBRS": "p",
    "OCDM": "h",
}


def in_order(methods: Iterable[str]) -> list[str]:
    """Return the methods, each once, in the order of the main table; ValueError for others."""
    present = set(methods)
    if unknown := present - set(COLOURS):
        raise ValueError(
            f"expected methods that have a look, got {', '.join(sorted(unknown))}; give each a "
            "colour and a marker in prslib/plots/methods.py"
        )
    return [name for name in COLOURS if name in present]
