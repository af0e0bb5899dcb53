"""How exactly a network's products are computed: float32, TF32 or bfloat16."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Precision:
    """A choice of arithmetic; weights, loss and optimiser stay in float32 (our own choice).

    Parameters
    ----------
    products : str
        "ieee" or "tf32": how a GPU multiplies float32 matrices and convolves. TF32 keeps 10 bits of
        the mantissa and float32's range.
    autocast : torch.dtype or None
        What `torch.autocast` lowers a forward pass to; None for float32.
    memory_format : torch.memory_format
        How four-dimensional weights lie in memory.

    Notes
    -----
    A CPU knows no TF32: there "tf32" is float32 with the weights in another order. PyTorch's own
    default lets convolutions on a GPU take TF32; "fp32" here does not.
    """

    products: str
    autocast: torch.dtype | None
    memory_format: torch.memory_format

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Hold the process's float32 products at this choice; what was set before comes back."""
        knobs = (
            torch.backends.cuda.matmul,
            torch.backends.cudnn.conv,
            torch.backends.cudnn.rnn,
        )
        before = [knob.fp32_precision for knob in knobs]
        try:
            for knob in knobs:
                knob.fp32_precision = self.products
            yield
        finally:
            for knob, value in zip(knobs, before, strict=True):
                knob.fp32_precision = value

    def forward(self, device: torch.device) -> torch.autocast:
        """Return the context of a forward pass.

        Parameters
        ----------
        device : torch.device
            Where it is computed.

        Returns
        -------
        torch.autocast
            Without a cache: each weight is lowered once a pass in any case, and a cast that
            outlived its pass would be wrong in a captured step.

        Examples
        --------
        >>> with PRECISIONS["bf16"].forward(torch.device("cpu")):
        ...     torch.nn.functional.linear(torch.ones(1, 2), torch.ones(1, 2)).dtype
        torch.bfloat16
        """
        return torch.autocast(
            device.type,
            self.autocast or torch.bfloat16,
            enabled=self.autocast is not None,
            cache_enabled=False,
        )


PRECISIONS: dict[str, Precision] = {
    "fp32": Precision("ieee", None, torch.contiguous_format),
    "tf32": Precision("tf32", None, torch.channels_last),
    "bf16": Precision("tf32", torch.bfloat16, torch.channels_last),
}
