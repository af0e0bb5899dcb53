"""Start the kernels of notebooks as forks of one process.

This process has already imported what notebooks import; otherwise, the imports would
take each kernel two seconds. Kernels do not share variables or matplotlib settings.
"""

import multiprocessing
import os
import tempfile
import threading
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any
from uuid import uuid4

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
    """Start the importing process in the background."""
    multiprocessing.set_forkserver_preload(IMPORTED)
    forkserver.ensure_running()


class Kernel(ForkServerProcess):
    """A kernel in a forked process, with the methods of `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], folder: str):
        super().__init__()
        self.arguments = arguments
        self.folder = folder
        self.environment = dict(os.environ)  # may have changed since `prepare`

    def run(self) -> None:
        """Serve the notebook; called in the forked process."""
        import matplotlib as mpl
        from ipykernel.kernelapp import IPKernelApp

        threading.Thread(target=end_with_drawing, daemon=True).start()
        os.setsid()  # Ctrl-C reaches only the process that started this one
        os.chdir(self.folder)
        os.environ |= self.environment
        mpl.rcParams["backend"] = INLINE
        app = IPKernelApp.instance()
        app.initialize(self.arguments)
        app.start()

    def poll(self) -> int | None:
        """Return the exit status, None while the kernel runs."""
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
    """End this kernel as soon as the process that started it has ended."""
    from ipykernel.kernelapp import IPKernelApp

    drawing = multiprocessing.parent_process()
    assert drawing is not None
    drawing.join()
    IPKernelApp.instance().cleanup_connection_file()  # and the sockets
    os._exit(1)


class Provisioner(LocalProvisioner):
    """Start a `Kernel` instead of jupyter_client's command."""

    async def launch_kernel(
        self, cmd: list[str], **kwargs: Any
    ) -> KernelConnectionInfo:
        """Start the kernel."""
        arguments = cmd[cmd.index("-f") :]
        self.process = Kernel(arguments, kwargs.get("cwd") or os.getcwd())
        self.process.start()
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class ForkManager(Manager):
    """A manager of a forked kernel, for nbclient.

    The kernel's sockets are files, because another process could take a free port first.
    """

    def __init__(self, **options: Any):
        sockets = os.path.join(tempfile.gettempdir(), f"prslib-{uuid4().hex[:8]}")
        super().__init__(transport="ipc", ip=sockets, **options)
        self.provisioner = Provisioner(kernel_spec=self.kernel_spec, parent=self)
