"""Count the arithmetic and traffic of a training step, and measure the rates of a machine."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from prslib.models.networks import make_model, split
from prslib.training.config import PRECISIONS
from prslib.training.device import Precision
from prslib.training.learner import as_input

CLASSES = 70  # as in COCOseq


def clock(function: Callable, device: torch.device) -> float:
    """Return the seconds that a call takes, with all the work that it leaves to the device."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    function()
    wait()
    return time.perf_counter() - start


class Traffic(TorchDispatchMode):
    """Count the bytes of tensors of ``batch`` rows that operations read and write, each once."""

    def __init__(self, batch: int):
        super().__init__()
        self.batch, self.total = batch, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not func.is_view and func is not torch.ops.aten.detach.default:
            leaves = pytree.tree_leaves((args, kwargs, result))
            tensors = [
                leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.dim()
            ]
            self.total += sum(t.nbytes for t in tensors if len(t) == self.batch)
        return result


def work(name: str, image_size: int, batch: int, dtype: torch.dtype) -> tuple[int, int]:
    """Count the floating-point operations of a step, and the bytes of its activations' traffic."""
    shape = (image_size, image_size, 3)
    with torch.device("meta"):  # nothing is computed to count
        lower, upper = split(make_model(name, shape, CLASSES, 0, "none").to(dtype), 0)
    pixels = torch.empty(batch, *shape, dtype=torch.uint8, device="meta")
    targets = torch.zeros(batch, CLASSES, device="meta")
    traffic = Traffic(batch)

    def loss(logits, targets):
        return F.multilabel_soft_margin_loss(logits.float(), targets)

    with FlopCounterMode(display=False) as flops, traffic:
        inputs = lower(as_input(pixels).to(dtype))
        if hasattr(upper, "objective"):
            upper.objective(inputs, targets, loss).backward()
        else:
            loss(upper(inputs), targets).backward()
    return flops.get_total_flops(), traffic.total


def rate(
    function: Callable, amount: float, device: torch.device, calls: int = 10
) -> float:
    """Return the median amount a second of calls in a row; two rows warm up."""

    def row() -> None:
        for _ in range(calls):
            function()

    return calls * amount / np.median([clock(row, device) for _ in range(12)][2:])


def floors(
    name: str, image_size: int, batch: int, device: torch.device
) -> pd.DataFrame:
    """Measure the rates of a device and return the milliseconds that they allow a step."""
    side, length = (8192, 2**30) if device.type == "cuda" else (1024, 2**26)
    source = torch.randint(256, (length,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = rate(lambda: target.copy_(source), 2 * length, device)
    rows = []
    for key in PRECISIONS:
        precision = Precision(key)
        dtype = torch.bfloat16 if precision.is_half else torch.float32
        left, right = torch.randn(2, side, side, device=device).to(dtype)
        with precision.in_force():
            product = rate(partial(torch.matmul, left, right), 2 * side**3, device)
        operations, traffic = work(name, image_size, batch, dtype)
        rows.append((key, "arithmetic", operations, product))
        rows.append((key, "traffic", traffic, copied))
    frame = pd.DataFrame(rows, columns=["precision", "part", "amount", "rate"])
    return frame.assign(ms=1000 * frame["amount"] / frame["rate"])
