"""Train runs: configurations, replay, the learner; one order of rounding."""

import os
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# Each library orders a sum by the processor, unless its variable names one.
CHOICES = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own loops
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # its convolutions
    "MKL_CBWR": "COMPATIBLE",  # its products of matrices
    "OPENBLAS_CORETYPE": "Haswell",  # numpy's, scipy's and scikit-learn's
}
# Their versions decide the last digit of a number and the pixels of a picture.
PACKAGES = (
    "torch",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "matplotlib",
    "seaborn",
    "pillow",
)


def set_deterministic() -> None:
    """Let the libraries round alike on all processors that have AVX2 (since 2013)."""
    # A sum of float32 depends on its order, and a training that differs in the last
    # digit after one step is another training after a thousand. PyTorch reads the
    # variables before its first sum, numpy when it is loaded, mostly before this: so
    # `make figures` starts new processes, and images are drawn in integers. Variables
    # that are set already stay. Other processors keep their own order, and GPUs are
    # not concerned.
    from llvmlite.binding import get_host_cpu_features  # comes with numba

    if get_host_cpu_features().get("avx2", False):
        for name, choice in CHOICES.items():
            os.environ.setdefault(name, choice)


def versions() -> "pd.DataFrame":
    """Return the packages and versions with which results come out to the byte."""
    import pandas as pd

    rows = [(name, version(name)) for name in PACKAGES]
    return pd.DataFrame(rows, columns=["package", "version"])
