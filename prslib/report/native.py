"""Run notebooks with the current Python, whatever kernels a user has installed."""

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from traitlets import Instance, List


class Specs(KernelSpecManager):
    """Offer a single kernel, python3, which is the current Python."""

    kernel_dirs = List([])


class Manager(AsyncKernelManager):
    """A manager of that kernel, for nbclient."""

    kernel_spec_manager = Instance(Specs, ())
