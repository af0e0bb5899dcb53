"""Say which devices are here, and where a network's inputs lie."""

import numpy as np
import torch
from torch import Tensor

from prslib.checks import one_of

INPUTS_SHARE = 0.5  # of a GPU's free memory for inputs; training needs the rest


def check_device(device: torch.device | str) -> None:
    """Refuse a device that is not here: "cpu", "cuda", "cuda:1" for the second GPU."""
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    names = ["cpu", *gpus]
    if gpus:
        names.append("cuda")
    one_of("device", str(device), names)


class Inputs:
    """A network's inputs: uint8 images (N, H, W, channels), or float features (N, D).

    They lie on the network's device where they fit, else on the host. Labels, too.
    """

    def __init__(self, inputs: np.ndarray | Tensor, device: torch.device | str = "cpu"):
        self.device = torch.device(device)
        self.tensor = torch.as_tensor(inputs)
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            if self.tensor.nbytes <= INPUTS_SHARE * free:
                self.tensor = self.tensor.to(self.device)

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.tensor)

    def __getitem__(self, rows: np.ndarray) -> Tensor:
        """Return the inputs (B, ...) of some rows, on the device."""
        index = to_device(torch.from_numpy(rows), self.tensor.device)
        return to_device(self.tensor.index_select(0, index), self.device)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Send a tensor to a device; the host goes on while a GPU still computes."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
