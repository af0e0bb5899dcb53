"""How exactly a network's products are computed: float32, TF32 or bfloat16."""

import gc
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


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


ROOM = 0.5  # the share of a GPU's free memory that images may take; the rest is for training
DEPTH = 2  # batches on their way to the device while one is trained on


class Images(Protocol):
    """uint8 images (N, H, W, channels) that come in batches on the network's device.

    Attributes
    ----------
    shape : torch.Size
        (N, H, W, channels).
    """

    shape: torch.Size

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def __getitem__(self, indices: Tensor) -> Tensor:
        """Return some images (B, H, W, channels) on the network's device, now."""
        ...

    def feed(self, plan: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the images and the indices of every batch of a plan, both on the device.

        Images that were yielded may be overwritten once the next ones are asked for.
        """
        ...


def place(images: np.ndarray | Tensor, device: torch.device | str) -> Images:
    """Put images where a network can reach them fastest (our own choice).

    Parameters
    ----------
    images : ndarray or Tensor of uint8, (N, H, W, channels)
        On the host.
    device : torch.device or str
        The network's.

    Returns
    -------
    Images
        `Resident` on a CPU, and on a GPU where they fit; else `Staged`.

    Examples
    --------
    >>> images = place(np.zeros((3, 8, 8, 1), np.uint8), "cpu")
    >>> images[torch.tensor([0, 2])].shape
    torch.Size([2, 8, 8, 1])
    """
    device, images = torch.device(device), torch.as_tensor(images)
    if fits(images.nbytes, device):
        try:
            return Resident(images.to(device))
        except torch.cuda.OutOfMemoryError:  # another run on this GPU has been faster
            pass
    return Staged(images, device)


def check_device(device: torch.device | str) -> None:
    """Refuse a device that is not there, before work starts.

    Parameters
    ----------
    device : torch.device or str
        "cpu", "cuda", or "cuda:1" for the second GPU.

    Raises
    ------
    ValueError
        If it is none of these, or this machine has no such GPU.

    Examples
    --------
    >>> check_device("cpu")
    """
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        wanted = None
    gpus = torch.cuda.device_count()
    known = ", ".join(["cpu", *(["cuda"] if gpus else []), *(f"cuda:{i}" for i in range(gpus))])
    if str(wanted) not in known.split(", "):
        raise ValueError(f"unknown device {str(device)!r}; devices of this machine: {known}")


def fits(size: int, device: torch.device) -> bool:
    """Return whether images of ``size`` bytes fit on a device beside what training takes there."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return size <= ROOM * free


def on_device(plan: Sequence[np.ndarray], device: torch.device) -> Sequence[Tensor]:
    """Hand a whole plan to a device as one tensor.

    Parameters
    ----------
    plan : sequence of ndarray of int64
        The indices of every batch; they may differ in length.
    device : torch.device
        Where they are wanted.

    Returns
    -------
    sequence of Tensor of int64
        Views of one tensor, one a batch.

    Examples
    --------
    >>> on_device([np.array([3, 1]), np.array([2])], torch.device("cpu"))
    (tensor([3, 1]), tensor([2]))
    """
    if not len(plan):
        return ()
    flat = torch.from_numpy(np.concatenate(plan))
    if device.type == "cuda":
        flat = flat.pin_memory()  # nothing has to wait until it has arrived
    flat = flat.to(device, non_blocking=True)
    return flat.split([len(batch) for batch in plan])


class Resident:
    """Images on the network's own device, all of them.

    Parameters
    ----------
    images : Tensor of uint8, (N, H, W, channels)
        On the device.
    """

    def __init__(self, images: Tensor):
        self.images, self.shape = images, images.shape

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __getitem__(self, indices: Tensor) -> Tensor:
        """Return some images on the device."""
        return self.images[indices]

    def feed(self, plan: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the images and the indices of every batch, gathered on the device."""
        for rows in on_device(plan, self.images.device):
            yield self.images.index_select(0, rows), rows


class Staged:
    """Images on the host, each batch sent to the device while the one before is trained on.

    Parameters
    ----------
    images : Tensor of uint8, (N, H, W, channels)
        On the host.
    device : torch.device
        Where the batches are wanted.
    lane : optional
        What carries a batch over, by default `SideStream` for a GPU.

    Notes
    -----
    Pinned are the buffers that batches pass through, not the images: pinning those would hold all
    of them a second time, and again for every process on the machine.
    """

    def __init__(self, images: Tensor, device: torch.device, lane=None):
        self.images, self.shape, self.device = images, images.shape, device
        self.lane = lane or (SideStream(device) if device.type == "cuda" else SameDevice())

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __getitem__(self, indices: Tensor) -> Tensor:
        """Return some images on the device; this waits for the copy."""
        return self.images[indices.to(self.images.device)].to(self.device)

    def feed(self, plan: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the images and the indices of every batch, the next `DEPTH` under way meanwhile."""
        largest = max(map(len, plan), default=0)
        shape = (largest, *self.shape[1:])
        slots = cycle([self.lane.slot(shape) for _ in range(DEPTH + 1)])
        under_way = deque()
        for batch, rows in zip(plan, on_device(plan, self.device), strict=True):
            under_way.append((self._send(batch, next(slots)), len(batch), rows))
            if len(under_way) > DEPTH:
                yield from self._arrive(*under_way.popleft())
        while under_way:
            yield from self._arrive(*under_way.popleft())

    def _send(self, batch: np.ndarray, slot):
        host = self.lane.host(slot)[: len(batch)]
        torch.index_select(self.images, 0, torch.from_numpy(batch), out=host)
        self.lane.send(slot, len(batch))
        return slot

    def _arrive(self, slot, length: int, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        yield self.lane.arrived(slot)[:length], rows
        self.lane.release(slot)


class SameDevice:
    """Carry nothing: where network and images share a device, a slot is one buffer."""

    def slot(self, shape: tuple[int, ...]) -> Tensor:
        """Make a slot for a batch of up to this shape."""
        return torch.empty(shape, dtype=torch.uint8)

    def host(self, slot: Tensor) -> Tensor:
        """Return the buffer on the host, free to be written."""
        return slot

    def send(self, slot: Tensor, length: int) -> None:
        """Start the copy of the first ``length`` images to the device."""

    def arrived(self, slot: Tensor) -> Tensor:
        """Return the buffer on the device; what reads it next finds the images there."""
        return slot

    def release(self, slot: Tensor) -> None:
        """Say that everything that reads the buffer on the device is on its way."""


class CudaSlot:
    """A buffer in pinned memory, one on the GPU, and when each is free again.

    Parameters
    ----------
    shape : tuple of int
        Of the largest batch.
    device : torch.device
        The GPU.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device):
        self.host = torch.empty(shape, dtype=torch.uint8, pin_memory=True)
        self.there = torch.empty(shape, dtype=torch.uint8, device=device)
        self.sent, self.read = torch.cuda.Event(), torch.cuda.Event()


class SideStream:
    """Carry batches to a GPU on a stream of their own, beside the computation.

    Parameters
    ----------
    device : torch.device
        The GPU.
    """

    def __init__(self, device: torch.device):
        self.device, self.stream = device, torch.cuda.Stream(device)

    def slot(self, shape: tuple[int, ...]) -> CudaSlot:
        """Make a slot for a batch of up to this shape."""
        slot = CudaSlot(shape, self.device)
        slot.there.record_stream(self.stream)  # nobody else's before its last copy is done
        self.release(slot)  # and not ours before its last owner is done
        return slot

    def host(self, slot: CudaSlot) -> Tensor:
        """Return the pinned buffer once its last copy has left; that was `DEPTH` batches ago."""
        slot.sent.synchronize()
        return slot.host

    def send(self, slot: CudaSlot, length: int) -> None:
        """Start the copy of the first ``length`` images, after the last reader of the buffer."""
        self.stream.wait_event(slot.read)
        with torch.cuda.stream(self.stream):
            slot.there[:length].copy_(slot.host[:length], non_blocking=True)
            slot.sent.record(self.stream)

    def arrived(self, slot: CudaSlot) -> Tensor:
        """Let the current stream wait for the copy and return the buffer on the GPU."""
        torch.cuda.current_stream(self.device).wait_event(slot.sent)
        return slot.there

    def release(self, slot: CudaSlot) -> None:
        """Remember where the current stream is: by then the buffer has been read."""
        slot.read.record(torch.cuda.current_stream(self.device))


WARM_UP = 3  # calls of a shape before it is recorded: libraries set themselves up meanwhile


class Graphs:
    """Record and replay on a CUDA stream of its own.

    Parameters
    ----------
    device : torch.device
        A GPU.

    Notes
    -----
    What the graphs compute on the way lies in one pool of memory: they run one after another, and
    none reads what another left there.
    """

    def __init__(self, device: torch.device):
        self.device, self.stream = device, torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run on the own stream, after what the current stream has and before what it gets."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            yield
        current.wait_stream(self.stream)

    def waits(self, function: Callable[..., None], inputs: tuple[Tensor, ...]) -> bool:
        """Call a function and return whether it waited for the device, which no graph can hold."""
        before = torch.cuda.get_sync_debug_mode()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it says of itself that it is a prototype
                torch.cuda.set_sync_debug_mode("warn")
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                function(*inputs)
        finally:
            torch.cuda.set_sync_debug_mode(before)
        waited = [w for w in seen if "synchronizing CUDA operation" in str(w.message)]
        for other in seen:
            if other not in waited:
                warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
        return bool(waited)

    def record(self, function: Callable[..., None], inputs: tuple[Tensor, ...]) -> Callable:
        """Return what repeats a call on the same tensors; recording itself computes nothing."""
        gc.collect()  # a graph that is freed while another is recorded breaks the recording
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            function(*inputs)
        return graph.replay


class Captured:
    """Call a function eagerly at first, then replay it: one graph for each shape of its inputs.

    Parameters
    ----------
    function : callable
        Takes tensors on the device and returns nothing. It changes tensors in place alone, always
        the same ones, and neither waits for the device nor looks at a tensor's values.
    graphs : Graphs
        What records and replays.

    Notes
    -----
    The first calls of a shape are run as they are, on the stream that records: they warm the
    libraries up and count as calls, so that nothing has to be undone. A shape that comes less
    often, such as a stream's first batch, which has nothing to replay, is never recorded.

    The last of these calls is watched. A function that waits for the device cannot be recorded; it
    goes on being called eagerly, after a warning. So does one whose recording fails: recording
    computes nothing, so that no tensor has changed.
    """

    def __init__(self, function: Callable[..., None], graphs: Graphs):
        self.function, self.graphs = function, graphs
        self.replays: dict[tuple, tuple[tuple[Tensor, ...], Callable]] = {}
        self.calls: Counter = Counter()
        self.recordable = True

    def __call__(self, *inputs: Tensor) -> None:
        """Call the function on these inputs, or replay it with their values."""
        shapes = tuple(tensor.shape for tensor in inputs)
        self.calls[shapes] += 1
        with self.graphs.beside():
            if self.recordable and self.calls[shapes] > WARM_UP and shapes not in self.replays:
                self._record(shapes, inputs)
            if shapes in self.replays:
                static, replay = self.replays[shapes]
                for mine, given in zip(static, inputs, strict=True):
                    mine.copy_(given)
                replay()
            elif self.recordable and self.calls[shapes] == WARM_UP:
                if self.graphs.waits(self.function, inputs):
                    self._give_up("it waits for the device")
            else:
                self.function(*inputs)

    def forget(self) -> None:
        """Begin anew: needed when tensors that the function changes are replaced by others."""
        self.replays.clear()
        self.calls.clear()

    def _record(self, shapes: tuple, inputs: tuple[Tensor, ...]) -> None:
        static = tuple(tensor.clone() for tensor in inputs)
        try:
            self.replays[shapes] = static, self.graphs.record(self.function, static)
        except RuntimeError as error:
            self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self.recordable = False
        warnings.warn(
            f"the training step cannot be recorded as a CUDA graph: {why}; it is launched kernel "
            "by kernel, with the same result but more slowly",
            stacklevel=4,
        )
