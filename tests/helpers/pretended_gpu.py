"""A GPU in name alone: its tensors lie on the host and refuse those that are not its own."""

from contextlib import nullcontext
from typing import ClassVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

GPU, HOST = torch.device("cuda:0"), torch.device("cpu")
COPIES = {"_to_copy", "copy_"}
INDEXED = {"index", "index_put_", "_index_put_impl_"}  # also by indices on the host
ANSWERS = {"_local_scalar_dense", "equal"}  # to Python
LOOKS = ANSWERS | {"nonzero", "masked_select", "_unique2"}


class There(torch.Tensor):
    """A tensor on the pretended GPU; autograd takes it for one on the meta device."""

    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, here):
        """Wrap a tensor of the host."""
        lies = {"strides": here.stride(), "storage_offset": here.storage_offset()}
        self = torch.Tensor._make_wrapper_subclass(
            cls, here.size(), **lies, dtype=here.dtype, device="meta"
        )
        self.here = here
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _compute(func, args, kwargs or {})


class PretendedGPU(TorchDispatchMode):
    """While it is entered, "cuda:0" is a device; ``waits`` lists what made the host wait for it."""

    waits: ClassVar[list[str]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _compute(func, args, kwargs or {})


class PretendedGraphs:
    """In place of `prslib.training.device.Graphs`: the graph is the function itself."""

    replayed = 0

    def __init__(self, device):
        assert device == GPU

    def beside(self):
        return nullcontext()

    def waits(self, function, inputs):
        before = len(PretendedGPU.waits)
        function(*inputs)
        return len(PretendedGPU.waits) > before

    def record(self, function, inputs):
        def replay():
            PretendedGraphs.replayed += 1
            assert not self.waits(function, inputs)

        return replay


def _compute(func, args, kwargs):
    name = func.overloadpacket.__name__
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    known = {id(tensor.here): tensor for tensor in tensors if isinstance(tensor, There)}
    strangers = [t for t in tensors if not isinstance(t, There) and t.dim()]
    if known and strangers and name not in COPIES | INDEXED:
        shapes = [tuple(tensor.shape) for tensor in strangers]
        raise RuntimeError(f"{func} got tensors on {GPU} and, of shapes {shapes}, on the host")
    stays = bool(known) and name not in ANSWERS
    if (device := kwargs.get("device")) is not None:
        stays = torch.device(device) != HOST
        kwargs = {**kwargs, "device": HOST}
    later = kwargs.get("non_blocking", name == "copy_" and args[2:] == (True,))
    if _waits(name, tensors, known, strangers, stays) and not later:
        PretendedGPU.waits.append(str(func))
    args, kwargs = tree_map(lambda leaf: getattr(leaf, "here", leaf), (args, kwargs))

    def there(leaf):
        if not isinstance(leaf, torch.Tensor) or id(leaf) in known:
            return known.get(id(leaf), leaf)
        return There(leaf) if stays else leaf

    return tree_map(there, func(*args, **kwargs))


def _waits(name, tensors, known, strangers, stays):
    if name in COPIES:
        return bool(known) != stays or bool(known and strangers)
    by_truth = name in INDEXED and any(t.dtype == torch.bool for t in tensors[1:])
    return bool(known) and (name in LOOKS or bool(strangers) or by_truth)
