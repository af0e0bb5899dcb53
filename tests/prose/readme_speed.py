"""What the README says of the samplers' speed, on COCOseq's labels."""

import math

from prose.evidence import number

DOCUMENT = "README.md"
SECTION = ("**How fast.**", "\n![")
METHODS = ("CRS", "PRS", "CBRS", "OCDM")


def speed(contestant, unit=1):
    """Return median samples a second with two digits, in a unit."""
    found = number(
        "samplers", "samples_per_s", profile="bench", contestant=contestant, stream="cocoseq"
    )
    return round(found, 1 - math.floor(math.log10(found))) / unit


SAID = {
    "CRS {:g} million samples/s, PRS {:g} million": lambda: [speed(m, 1e6) for m in METHODS[:2]],
    "CBRS {:.0f} thousand, OCDM {:.0f} thousand": lambda: [speed(m, 1e3) for m in METHODS[2:]],
    "plain numpy reaches {:.0f} thousand, {:.0f}, {:.0f} and {:.0f}": lambda: [
        speed("CRS in plain numpy", 1e3),
        *(speed(f"{method} in plain numpy") for method in METHODS[1:]),
    ],
    "and Avalanche's reservoir {:.0f}": lambda: [speed("Avalanche reservoir")],
    "GSS and ExStream, given what they ask the network for, take {:.0f} and {:.0f} thousand": (
        lambda: [
            speed("GSS, gradient products given", 1e3),
            speed("ExStream, features given", 1e3),
        ]
    ),
    "its reservoir takes {:g} million samples/s": lambda: [
        speed("Avalanche reservoir, one piece", 1e6)
    ],
    "PRS as an Avalanche buffer takes {:.0f}": lambda: [speed("PRS as an Avalanche buffer")],
}
FREE = ("batches of 10 into a full memory of 2000", "and in batches of 10")
