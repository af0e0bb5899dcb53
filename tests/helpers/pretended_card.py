"""A mock GPU: tensors claim to be on it, but are computed on the CPU.

Inside `Card`, mixing its tensors with the host's raises an error, as on a GPU. Operations
for which the host would wait are counted, by the function of prslib that calls them.
"""

import traceback
from collections import Counter

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from prslib.paths import PACKAGE

NAME = "card"
ATEN = torch.ops.aten
# operations whose results, or their shapes, are numbers on the host
WAITS = {
    ATEN._local_scalar_dense.default,
    ATEN.equal.default,
    ATEN.masked_select.default,
    ATEN.nonzero.default,
}
# operations of the same kind if a mask chooses the rows
CHOICES = {ATEN.index.Tensor, ATEN.index_put_.default, ATEN.index_put.default}
MOVES = {ATEN._to_copy.default, ATEN.copy_.default}


class Backend(backend_registration._DummyBackendModule):
    """The module that torch expects of a device."""

    def get_amp_supported_dtype(self):
        return [torch.bfloat16]


KERNELS = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")


def register():
    """Register a device of this name in torch, for the rest of the process."""
    setup = backend_registration._setup_privateuseone_for_python_backend
    setup(NAME, backend_module=Backend())
    # its autocast leaves tensors in float32
    KERNELS.fallback(torch.library.fallthrough_kernel)


class OnCard(torch.Tensor):
    """A tensor that claims to be on the card."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, computed):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            computed.shape,
            strides=computed.stride(),
            storage_offset=computed.storage_offset(),
            dtype=computed.dtype,
            device=torch.device(NAME, 0),
        )
        made.computed = computed
        return made

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        raise RuntimeError(f"{operation} outside of Card")

    def as_subclass(self, _kind):
        """Return the tensor itself, which on a card would be a plain tensor."""
        return self

    def numpy(self, *args, **kwargs):
        raise TypeError("can't convert a card's tensor to numpy")


class Card(TorchDispatchMode):
    """Compute on the card; count waits by (what, "file:function" of prslib)."""

    def __init__(self):
        super().__init__()
        self.waits = Counter()
        self.pinned = set()  # addresses of pinned memory
        self.kept = []  # its tensors, so that no other tensor gets an address

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [
            x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)
        ]
        if operation is ATEN._pin_memory.default:
            return self.pin(args[0])
        device = kwargs.pop("device", None)
        lands = self.lands(operation, tensors, device)
        if operation in MOVES:
            self.note_move(tensors[-1], lands)
        else:
            self.note_mixture(operation, tensors)
        if operation is ATEN._to_copy.default:
            kwargs.pop("non_blocking", None)
        if device is not None:
            kwargs["device"] = torch.device("cpu")

        wrappers = {id(x.computed): x for x in tensors if isinstance(x, OnCard)}
        plain = tree_map(_computed, (list(args), kwargs))
        result = operation(*plain[0], **plain[1])

        def wrapped(x):
            if not isinstance(x, torch.Tensor):
                return x
            if id(x) in wrappers:  # computed in place
                return wrappers[id(x)]
            return OnCard(x) if lands else x

        return tree_map(wrapped, result)

    def pin(self, tensor):
        """Copy a tensor of the host into pinned memory, which a GPU reads directly."""
        copy = tensor.clone()
        self.pinned.add(copy.untyped_storage().data_ptr())
        self.kept.append(copy)
        return copy

    def is_pinned(self, tensor):
        """Return whether a tensor of the host, or what it is a view of, is pinned."""
        return tensor.untyped_storage().data_ptr() in self.pinned

    def lands(self, operation, tensors, device):
        """Return whether an operation's result is on the card."""
        on_card = [isinstance(x, OnCard) for x in tensors]
        if operation is ATEN.copy_.default:
            return on_card[0]
        if device is not None:
            return torch.device(device).type == NAME
        return any(on_card)

    def note_move(self, source, lands):
        """Count a copy between host and card that the host waits for."""
        from_card = isinstance(source, OnCard)
        if from_card and not lands:
            self.note("to the host")
        elif lands and not from_card and not self.is_pinned(source):
            self.note("from pageable memory")

    def note_mixture(self, operation, tensors):
        """Refuse to mix tensors of card and host, except single numbers; count waits."""
        if not any(isinstance(x, OnCard) for x in tensors):
            return
        if any(x.dim() for x in tensors if not isinstance(x, OnCard)):
            raise RuntimeError(f"{operation} on card and host")
        by_mask = any(x.dtype == torch.bool for x in tensors[1:])
        if operation in WAITS or (operation in CHOICES and by_mask):
            self.note(operation.name())

    def note(self, what):
        """Count a wait by the function of prslib that causes it."""
        package = f"{PACKAGE}/"  # a checkout may be in a folder of the same name
        places = [
            f"{frame.filename.removeprefix(package)}:{frame.name}"
            for frame in traceback.extract_stack()
            if frame.filename.startswith(package)
        ]
        self.waits[what, places[-1] if places else "a backward pass"] += 1


def _computed(x):
    return x.computed if isinstance(x, OnCard) else x


def lstm_cell(x, state, *weights):
    """Compute `torch.lstm_cell` from basic operations; a GPU has a single operation."""
    of_x, of_hidden, *biases = weights
    hidden, cell = state
    gates = x @ of_x.T + hidden @ of_hidden.T + sum(biases)
    enters, stays, new, leaves = gates.chunk(4, 1)
    cell = stays.sigmoid() * cell + enters.sigmoid() * new.tanh()
    return leaves.sigmoid() * cell.tanh(), cell
