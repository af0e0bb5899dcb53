"""Prepare a device for training: arithmetic, where images are held, and CUDA graphs."""

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

IMAGES_SHARE = 0.5  # the part of a GPU's free memory that images may take; training needs the rest
DEPTH = 2  # batches on their way to the device while one is trained on
WARM_UP = 3  # calls of a shape before it is recorded, in which libraries set themselves up


class Precision:
    """A network's arithmetic, by a name of `PRECISIONS`; weights and loss stay in float32."""

    # on a CPU, which has no TF32, "tf32" is float32 with the weights in another memory format

    def __init__(self, name: str):
        plain = name == "fp32"  # PyTorch's own default lets convolutions take TF32
        self.products = "ieee" if plain else "tf32"  # TF32 keeps 10 bits of the mantissa
        self.memory_format = torch.contiguous_format if plain else torch.channels_last
        self.autocast = torch.bfloat16 if name == "bf16" else None  # of a forward pass

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Set how the process multiplies float32 on a GPU; what was set before comes back."""
        knobs = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
        before = [knob.fp32_precision for knob in knobs]
        try:
            for knob in knobs:
                knob.fp32_precision = self.products
            yield
        finally:
            for knob, value in zip(knobs, before, strict=True):
                knob.fp32_precision = value

    def forward(self, device: torch.device) -> torch.autocast:
        """Return the context of a forward pass on a device."""
        return torch.autocast(
            device.type,
            self.autocast or torch.bfloat16,
            enabled=self.autocast is not None,
            cache_enabled=False,  # a cast that outlives its pass is wrong in a captured step
        )


def check_device(device: torch.device | str) -> None:
    """Refuse a device that this machine does not have: "cpu", "cuda", "cuda:1" for GPU two."""
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        wanted = None
    gpus = torch.cuda.device_count()
    known = ["cpu", *["cuda"][:gpus], *(f"cuda:{i}" for i in range(gpus))]
    if str(wanted) not in known:
        here = ", ".join(known)
        raise ValueError(f"unknown device {str(device)!r}; devices of this machine: {here}")


class Images:
    """uint8 images (N, H, W, channels), or features (N, D), all on the network's device."""

    def __init__(self, images: Tensor, device: torch.device | None = None):
        self.images, self.shape, self.device = images, images.shape, device or images.device

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __getitem__(self, indices: Tensor) -> Tensor:
        """Return some images (B, H, W, channels) on the device."""
        return self.images.index_select(0, indices.to(self.images.device)).to(self.device)

    def feed(self, plan: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the images and the indices of every batch, both on the device."""
        for rows in on_device(plan, self.device):
            yield self.images.index_select(0, rows), rows


class HostImages(Images):
    """Images on the host, sent to a GPU batch by batch."""

    # The buffers are pinned and not the images: that would hold them a second time, once for every
    # process on the machine.

    def feed(self, plan: Sequence[np.ndarray]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield every batch, to be overwritten later, while the next `DEPTH` are on their way."""
        shape, kind = (max(map(len, plan), default=0), *self.shape[1:]), self.images.dtype
        buffers = [Buffer(shape, kind, self.device) for _ in range(DEPTH + 1)]
        rows = on_device(plan, self.device)
        for step in range(len(plan) + DEPTH):
            if step < len(plan):
                buffers[step % len(buffers)].send(self.images, torch.from_numpy(plan[step]))
            if (ready := step - DEPTH) >= 0:
                buffer = buffers[ready % len(buffers)]
                yield buffer.arrived()[: len(rows[ready])], rows[ready]
                buffer.release()


class Buffer:
    """Pinned memory, its copy on a GPU, and events that say when each is free again."""

    def __init__(self, shape: tuple[int, ...], kind: torch.dtype, device: torch.device):
        self.device, self.stream = device, _copy_stream(device)
        self.host = torch.empty(shape, dtype=kind, pin_memory=True)
        self.there = torch.empty(shape, dtype=kind, device=device)
        self.sent, self.read = torch.cuda.Event(), torch.cuda.Event()
        self.there.record_stream(self.stream)  # the memory stays ours until its last copy is done
        self.release()  # and its last owner is done before our first copy

    def send(self, images: Tensor, rows: Tensor) -> None:
        """Gather some images on the host and start their copy, after the last reader is done."""
        self.sent.synchronize()  # the last copy has left; that was `DEPTH` batches ago
        host = self.host[: len(rows)]
        torch.index_select(images, 0, rows, out=host)
        self.stream.wait_event(self.read)
        with torch.cuda.stream(self.stream):
            self.there[: len(rows)].copy_(host, non_blocking=True)
            self.sent.record(self.stream)

    def arrived(self) -> Tensor:
        """Let the current stream wait for the copy; return the buffer on the GPU."""
        torch.cuda.current_stream(self.device).wait_event(self.sent)
        return self.there

    def release(self) -> None:
        """Note where the current stream is: by then the buffer has been read."""
        self.read.record(torch.cuda.current_stream(self.device))


@lru_cache
def _copy_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream on which batches go to a GPU while another one computes."""
    return torch.cuda.Stream(device)


def place(images: np.ndarray | Tensor, device: torch.device | str) -> Images:
    """Put images (N, H, W, channels) on a device, or leave them on the host if they do not fit."""
    device, images = torch.device(device), torch.as_tensor(images)
    with suppress(torch.cuda.OutOfMemoryError):  # another run on this GPU has been faster
        if fits(images.nbytes, device):
            return Images(images.to(device))
    return HostImages(images, device)


def fits(size: int, device: torch.device) -> bool:
    """Return whether images of ``size`` bytes fit on a device beside what training takes there."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return size <= IMAGES_SHARE * free


def on_device(plan: Sequence[np.ndarray], device: torch.device) -> Sequence[Tensor]:
    """Return a plan's batches of indices, of any lengths, as views of one tensor on a device."""
    if not len(plan):
        return ()
    flat = torch.from_numpy(np.concatenate(plan))
    if device.type == "cuda":  # pinned, so that the host does not wait for the copy
        flat = flat.pin_memory().to(device, non_blocking=True)
    return flat.split([len(batch) for batch in plan])


class Graphs:
    """Record and replay on a CUDA stream of its own."""

    def __init__(self, device: torch.device):
        self.device, self.stream = device, torch.cuda.Stream(device)
        # one for all: they run one after another, and none reads what another left there
        self.pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run on the own stream, after the current stream's work so far and before its next."""
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            yield
        current.wait_stream(self.stream)

    def waits(self, function: Callable[..., None], inputs: tuple[Tensor, ...]) -> bool:
        """Call a function and return whether it waited for the device, which no graph can hold."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                torch.cuda.set_sync_debug_mode("warn")
                function(*inputs)
            finally:
                torch.cuda.set_sync_debug_mode(before)
        return any("synchronizing CUDA operation" in str(warning.message) for warning in seen)

    def record(self, function: Callable[..., None], inputs: tuple[Tensor, ...]) -> Callable:
        """Return a function that repeats a call on the same tensors; recording computes nothing."""
        gc.collect()  # a graph that is freed while another is recorded breaks the recording
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            function(*inputs)
        return graph.replay


class Captured:
    """Call a function eagerly at first, then replay it: one graph for each shape of its inputs."""

    # The function changes the same tensors in place every time and looks at no tensor's values. The
    # first calls of a shape run on the recording stream: they warm the libraries up and count as
    # calls, so nothing has to be undone. A rare shape, such as that of a stream's first batch
    # without replay, is never recorded. The last warm-up call is watched: a function that waits for
    # the device cannot be recorded and stays eager, after a warning. So does one whose recording
    # fails, which has changed no tensor.

    def __init__(self, function: Callable[..., None], graphs: Graphs):
        self.function, self.graphs = function, graphs
        self.replays: dict[tuple, tuple[tuple[Tensor, ...], Callable]] = {}
        self.calls: Counter = Counter()
        self.recordable = True

    def __call__(self, *inputs: Tensor) -> None:
        """Call the function, or replay it with the inputs' values."""
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
        """Drop all graphs: needed when other tensors replace those that the function changes."""
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
