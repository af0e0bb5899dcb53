"""Choose a device, set its arithmetic, and send tensors to it without waiting."""

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakMethod

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from prslib.checks import expected, one_of

LAUNCHED_SINGLY = 3  # calls with tensors of the same shapes before a capture


def check_device(name: str) -> str:
    """Return the name of an available device; "auto" is a GPU if there is one."""
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    names = ["cuda", *gpus, "cpu"] if gpus else ["cpu"]
    if torch.backends.mps.is_available():
        names.insert(0, "mps")
    return names[0] if name == "auto" else one_of("device", name, [*names, "auto"])


def describe_device(name: str) -> dict[str, str]:
    """Return what, besides settings and code, determines the last digits of a score."""
    kind = torch.device(name).type
    is_gpu = kind == "cuda"
    card = torch.cuda.get_device_name(name) if is_gpu else platform.machine()
    versions = {"torch": str(torch.__version__), "numpy": np.__version__}
    return {"device": kind, "card": card} | versions


@contextmanager
def run_settings(device: torch.device) -> Iterator[None]:
    """Set the arithmetic of a run, and restore the caller's settings afterwards.

    A run uses one thread, float32 without TF32, gradients and no autocast. A default
    device other than the CPU is refused, because weights are drawn on the CPU and a GPU
    would draw different ones.
    """
    default = torch.get_default_device()
    if default.type != "cpu":
        what = "torch's default device to be the CPU"
        advice = "call torch.set_default_device('cpu') and name the device of the run"
        raise RuntimeError(expected(what, default, advice))
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    # cudnn.conv is missing in torch's types
    conv = torch.backends.cudnn.conv  # ty: ignore[missing-attribute]
    products = torch.backends.cuda.matmul
    precisions = conv.fp32_precision, products.fp32_precision
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    conv.fp32_precision = products.fp32_precision = "ieee"
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast(device.type, enabled=False),
            threadpool_limits(1, "blas"),  # more threads would compete with other runs
        ):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        conv.fp32_precision, products.fp32_precision = precisions


def has_memory(device: torch.device) -> bool:
    """Return whether a device has separate memory; Apple's GPUs use the host's."""
    return device.type not in ("cpu", "mps")


def has_room(device: torch.device, nbytes: int) -> bool:
    """Return whether a number of bytes fits into half of a GPU's free memory."""
    if not has_memory(device):
        return False
    free, _ = torch.cuda.mem_get_info(device)
    # memory that this process keeps from an earlier run is free, too
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return nbytes <= (free + cached) / 2


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Send a tensor to a device; the host does not wait for a GPU."""
    if has_memory(device) and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def put(array: np.ndarray, device: torch.device) -> Tensor:
    """Return an array as a tensor, on the GPU if there is room for it."""
    tensor = torch.as_tensor(array)
    return tensor.to(device) if has_room(device, tensor.nbytes) else tensor


def take(tensor: Tensor, rows: np.ndarray, device: torch.device) -> Tensor:
    """Return some rows of a tensor, on a device."""
    index = send(torch.from_numpy(rows), tensor.device)
    return send(tensor.index_select(0, index), device)


class Captured:
    """Wrapper of a method on tensors, which is recorded as a CUDA graph and replayed.

    A training step launches a few thousand small operations, which costs several times as
    much as their arithmetic. After some calls with tensors of the same shapes, their
    launches are recorded as one CUDA graph, which later calls replay. The method must do
    the same thing each time and change its tensors in place; its return value is lost.
    """

    def __init__(self, method: Callable, device: torch.device):
        # weak, because the method's object refers to this wrapper
        self.method = WeakMethod(method)
        self.calls: Counter = Counter()
        self.graphs: dict[tuple, tuple[torch.cuda.CUDAGraph, list[Tensor]]] = {}
        self.is_possible = True
        self.stream = torch.cuda.Stream(device)

    def __call__(self, *tensors: Tensor) -> None:
        """Call the method, or replay it if tensors of these shapes were recorded."""
        shapes = tuple(tensor.shape for tensor in tensors)
        self.calls[shapes] += 1
        is_new = shapes not in self.graphs
        if is_new and self.is_possible and self.calls[shapes] > LAUNCHED_SINGLY:
            try:
                self.graphs[shapes] = self._capture(tensors)
            except RuntimeError:  # a number is read from the GPU, or memory is short
                self.is_possible = False
        if shapes not in self.graphs:
            self._launch(tensors)
            return
        graph, inputs = self.graphs[shapes]
        for static, tensor in zip(inputs, tensors, strict=True):
            static.copy_(tensor)
        graph.replay()

    def _launch(self, tensors: tuple[Tensor, ...]) -> None:
        """Call the method on the stream on which it will be captured."""
        present = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(present)
        with torch.cuda.stream(self.stream):
            self._call(tensors)
        present.wait_stream(self.stream)

    def _capture(
        self, tensors: tuple[Tensor, ...]
    ) -> tuple[torch.cuda.CUDAGraph, list[Tensor]]:
        """Record the method's launches without executing them."""
        inputs = [tensor.detach().clone() for tensor in tensors]
        graph = torch.cuda.CUDAGraph()
        mode = "thread_local"  # other threads may use the GPU
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode=mode):
            self._call(inputs)
        return graph, inputs

    def _call(self, tensors: Sequence[Tensor]) -> None:
        method = self.method()
        assert method is not None  # its object made the call
        method(*tensors)
