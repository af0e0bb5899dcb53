"""A mock GPU: tensors claim to be on it, but are computed on the CPU.

Inside `Card`, mixing its tensors with the host's raises an error, as on a GPU.
"""

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NAME = "card"
ATEN = torch.ops.aten
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
    """Compute on the card, and refuse to mix its tensors with the host's."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [
            x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)
        ]
        if operation is ATEN._pin_memory.default:
            return args[0].clone()
        device = kwargs.pop("device", None)
        lands = self.lands(operation, tensors, device)
        if operation not in MOVES:
            self.refuse_mixture(operation, tensors)
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

    def lands(self, operation, tensors, device):
        """Return whether an operation's result is on the card."""
        on_card = [isinstance(x, OnCard) for x in tensors]
        if operation is ATEN.copy_.default:
            return on_card[0]
        if device is not None:
            return torch.device(device).type == NAME
        return any(on_card)

    def refuse_mixture(self, operation, tensors):
        """Raise an error for tensors of card and host, except single numbers."""
        on_card = any(isinstance(x, OnCard) for x in tensors)
        if on_card and any(x.dim() for x in tensors if not isinstance(x, OnCard)):
            raise RuntimeError(f"{operation} on card and host")


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
