"""Start the kernels of notebooks as forks of one process.

That process has imported what notebooks import, which takes a kernel two seconds
otherwise. Each kernel has a namespace and separate matplotlib settings.
"""

import multiprocessing
import os
import threading
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

from prslib.report.native import Manager

IMPORTED = [
    "ipykernel.kernelapp",
    "ipywidgets",
    "prslib.report.deviations",
    "prslib.report.kernels",
    "prslib.report.ledger",
    "seaborn",
    "sklearn.manifold",
]
INLINE = "module://matplotlib_inline.backend_inline"  # shows figures in a notebook


def prepare() -> None:
    """Start the process that imports, while this one does something else."""
    multiprocessing.set_forkserver_preload(IMPORTED)
    forkserver.ensure_running()


class Kernel(ForkServerProcess):
    """A kernel in a process; it answers as one of `subprocess.Popen` does."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], folder: str):
        super().__init__()
        self.arguments = arguments
        self.folder = folder
        self.environment = dict(os.environ)  # may have changed since `prepare`

    def run(self) -> None:
        """Serve the notebook; called in the process."""
        import matplotlib as mpl
        from ipykernel.kernelapp import IPKernelApp

        threading.Thread(target=end_with_drawing, daemon=True).start()
        os.setsid()  # Ctrl-C is for the process that draws
        os.chdir(self.folder)
        os.environ |= self.environment
        mpl.rcParams["backend"] = INLINE
        app = IPKernelApp.instance()
        app.initialize(self.arguments)
        app.start()

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        return self.exitcode

    def wait(self) -> int | None:
        """Return the exit status once it has ended."""
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        assert self.pid is not None
        os.kill(self.pid, number)


def end_with_drawing() -> None:
    """End this kernel with the process that draws; the one that forked it waits for both."""
    drawing = multiprocessing.parent_process()
    assert drawing is not None
    drawing.join()
    os._exit(1)


class Provisioner(LocalProvisioner):
    """Start a `Kernel` where jupyter_client would start a command."""

    async def launch_kernel(
        self, cmd: list[str], **kwargs: Any
    ) -> KernelConnectionInfo:
        """Start it."""
        arguments = cmd[cmd.index("-f") :]
        self.process = Kernel(arguments, kwargs.get("cwd") or os.getcwd())
        self.process.start()
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class ForkManager(Manager):
    """A manager of such a kernel, for nbclient."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.provisioner = Provisioner(kernel_spec=self.kernel_spec, parent=self)
