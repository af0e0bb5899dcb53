"""Say which devices are here, and where a network's inputs lie."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from prslib.checks import device_name, one_of

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
        precisions = (
            torch.backends.cudnn.conv.fp32_precision,
            torch.backends.cuda.matmul.fp32_precision,
        )
        found["tf32"] = "tf32" in precisions
    return found


@contextmanager
def without_tf32() -> Iterator[None]:
    """Let a GPU compute float32 as float32: cuDNN would round to TF32."""
    settings = torch.backends.cudnn.conv, torch.backends.cuda.matmul
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
