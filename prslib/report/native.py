"""Run notebooks with the current Python, whatever kernels a user has installed."""

from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager


class Specs(KernelSpecManager):
    """Offer a single kernel, python3, which is the current Python."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.kernel_dirs = []


class Manager(AsyncKernelManager):
    """A manager of that kernel, for nbclient."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.kernel_spec_manager = Specs()
