"""The same rounding on every x86-64 processor, so that a run is the same wherever it is trained."""

import os
from importlib.metadata import version

import pandas as pd
from llvmlite.binding import get_host_cpu_features  # numba's own, which tells before torch is there

# what chooses the order of a sum by the processor, and how it is told to choose one for all
CHOICES = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own loops
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # its convolutions
    "MKL_CBWR": "COMPATIBLE",  # its products of matrices
    "OPENBLAS_CORETYPE": "Haswell",  # those of numpy, scipy and scikit-learn
}
# what else decides over the last digit of a number, or a pixel of a picture
PACKAGES = (
    *("torch", "numpy", "numba", "scipy", "scikit-learn"),
    *("matplotlib", "seaborn", "pillow"),
)


def round_alike() -> None:
    """Let the libraries below round alike on all processors that have AVX2; our own choice.

    A sum of float32 depends on its order, libraries order it by the processor's registers, and a
    training that differs in the last digit after one step is another training after a thousand.
    Here they take an order that processors since 2013 have. What the environment says already
    stays.

    Notes
    -----
    PyTorch reads this before its first sum, numpy when it is loaded: processes that are started
    afterwards have all of it. Processors without AVX2, among them all that are not x86-64, keep
    their own order. A GPU is not concerned, nor do two versions of PyTorch need to round alike.
    """
    if get_host_cpu_features().get("avx2", False):
        for name, choice in CHOICES.items():
            os.environ.setdefault(name, choice)


def versions() -> pd.DataFrame:
    """Return the versions with which a run or a picture comes out to the byte.

    Returns
    -------
    DataFrame
        Columns package and version.

    Examples
    --------
    >>> versions()["package"].tolist()[:2]
    ['torch', 'numpy']
    """
    return pd.DataFrame({"package": PACKAGES, "version": [version(name) for name in PACKAGES]})
