"""Say which devices are here, and where a network's inputs lie."""

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakMethod

import numpy as np
import torch
from torch import Tensor

from prslib.checks import device_name, one_of

LAUNCHED_SINGLY = 3  # calls of a shape before the one that is captured
INPUTS_SHARE = 0.5  # of a GPU's free memory for inputs; training needs the rest


def check_device(device: torch.device | str) -> str:
    """Return the name of a device that is here; "auto" is a GPU where there is one."""
    name = device_name(device)
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    names = [*gpus, "cpu"]
    if torch.backends.mps.is_available():
        names.insert(0, "mps")
    if gpus:
        names.insert(0, "cuda")
    return names[0] if name == "auto" else one_of("device", name, names)


def conditions(device: torch.device | str) -> dict[str, str | bool]:
    """Return what beside a configuration decides the last digits of a result."""
    kind = torch.device(device).type
    found = {
        "device": kind,
        "card": platform.machine(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }
    if kind == "cuda":
        found["card"] = torch.cuda.get_device_name(device)
        found["cudnn"] = str(torch.backends.cudnn.version())
        precisions = [setting.fp32_precision for setting in float32_settings()]
        found["tf32"] = "tf32" in precisions
    return found


def float32_settings() -> tuple[Any, Any]:
    """Return where torch says how a GPU computes float32: convolutions, matrices."""
    # torch's types do not tell of cudnn.conv
    conv = torch.backends.cudnn.conv  # ty: ignore[missing-attribute]
    return conv, torch.backends.cuda.matmul


@contextmanager
def without_tf32() -> Iterator[None]:
    """Let a GPU compute float32 as float32: cuDNN would round to TF32."""
    settings = float32_settings()
    before = [setting.fp32_precision for setting in settings]
    for setting in settings:
        setting.fp32_precision = "ieee"
    try:
        yield
    finally:
        for setting, precision in zip(settings, before, strict=True):
            setting.fp32_precision = precision


def is_apart(device: torch.device) -> bool:
    """Tell whether a device has memory of its own; Apple's GPUs have the host's."""
    return device.type not in ("cpu", "mps")


def free_memory(device: torch.device) -> int:
    """Return the free bytes of a GPU."""
    free, _ = torch.cuda.mem_get_info(device)
    # blocks that this process keeps of an earlier run are free, too
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + cached


def has_room(device: torch.device, nbytes: int) -> bool:
    """Tell whether a GPU takes so many bytes and keeps room to train."""
    return is_apart(device) and nbytes <= INPUTS_SHARE * free_memory(device)


class Inputs:
    """A network's inputs: uint8 images (N, H, W, channels), or float features (N, D).

    They lie on the network's device where they fit, else on the host. Labels, too.
    """

    def __init__(self, inputs: np.ndarray | Tensor, device: torch.device | str = "cpu"):
        self.device = torch.device(device)
        self.tensor = torch.as_tensor(inputs)
        if has_room(self.device, self.tensor.nbytes):
            self.tensor = self.tensor.to(self.device)

    @property
    def is_resident(self) -> bool:
        """Tell whether they lie on the device."""
        return self.tensor.device.type == self.device.type

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.tensor)

    def __getitem__(self, rows: np.ndarray) -> Tensor:
        """Return the inputs (B, ...) of some rows, on the device."""
        index = to_device(torch.from_numpy(rows), self.tensor.device)
        return to_device(self.tensor.index_select(0, index), self.device)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Send a tensor to a device; the host goes on while a GPU still computes."""
    if is_apart(device) and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class Captured:
    """A method of tensors, which a GPU of CUDA repeats without the host's launches.

    A training step launches a few thousand small operations, which takes several times
    as long as their arithmetic. After some calls with tensors of the same shapes their
    launches are recorded as a CUDA graph, and repeated as one. The method must do the
    same each time, and change what it changes in place; what it returns is lost.
    """

    def __init__(self, method: Callable, device: torch.device):
        # its object has this one: else both would stay on the GPU for a while
        self.method = WeakMethod(method)
        self.calls: Counter = Counter()
        self.graphs: dict[tuple, tuple[torch.cuda.CUDAGraph, list[Tensor]]] = {}
        self.is_possible = True
        self.stream = torch.cuda.Stream(device)

    def __call__(self, *tensors: Tensor) -> None:
        """Call the method, or repeat what it did with tensors of these shapes."""
        shapes = tuple(tensor.shape for tensor in tensors)
        self.calls[shapes] += 1
        is_new = shapes not in self.graphs
        if is_new and self.is_possible and self.calls[shapes] > LAUNCHED_SINGLY:
            try:
                self.graphs[shapes] = self._capture(tensors)
            except RuntimeError:  # it asks the GPU for a number, or memory is short
                self.is_possible = False
        if shapes not in self.graphs:
            self._launch(tensors)
            return
        graph, inputs = self.graphs[shapes]
        for mine, tensor in zip(inputs, tensors, strict=True):
            mine.copy_(tensor)
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
        """Record the method's launches, of which none is executed."""
        inputs = [tensor.detach().clone() for tensor in tensors]
        graph = torch.cuda.CUDAGraph()
        mode = "thread_local"  # other threads may use the GPU
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode=mode):
            self._call(inputs)
        return graph, inputs

    def _call(self, tensors: Sequence[Tensor]) -> None:
        method = self.method()
        assert method is not None  # its object calls
        method(*tensors)
