"""Make libraries round alike on all processors, and list the versions that matter."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# a library orders sums according to the processor, unless its variable is set
CHOICES = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own loops
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # PyTorch's convolutions
    "MKL_CBWR": "COMPATIBLE",  # PyTorch's products of matrices
    "OPENBLAS_CORETYPE": "Haswell",  # numpy's, scipy's and scikit-learn's
}
CPU_INFO = Path("/proc/cpuinfo")
PACKAGES = (
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
    "matplotlib",
    "seaborn",
    "pillow",
)


def set_deterministic() -> None:
    """Make libraries round alike on all processors that have AVX2 (since 2013)."""
    # A sum of float32 numbers depends on their order, and a training run that differs
    # in the last digit after one step is a different run after a thousand. PyTorch
    # reads the variables before its first sum. Numpy reads them when it is imported,
    # mostly before this call; therefore runs are trained in new processes. Variables
    # that are already set keep their values. Other processors and systems keep their
    # own order, and GPUs are not affected.
    if CPU_INFO.is_file() and " avx2 " in CPU_INFO.read_text():
        for name, choice in CHOICES.items():
            os.environ.setdefault(name, choice)


def versions() -> "pd.DataFrame":
    """Return the installed versions of the packages on which the bytes of results depend."""
    import pandas as pd

    rows = [(name, version(name)) for name in PACKAGES]
    return pd.DataFrame(rows, columns=["package", "version"])
