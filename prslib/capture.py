"""A function of tensors as a CUDA graph: one launch in place of a thousand.

A step of a large network on a batch of twenty is a few milliseconds of work in more than a thousand
kernels, and Python needs longer to launch them than the GPU to run them.
"""

import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

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
