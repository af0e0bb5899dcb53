"""List the networks by name; torch and a network's own module load when it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from prslib.models.weights import EMBEDDED, IN_TURN, NONE, check_weights


@dataclass(frozen=True)
class Architecture:
    """A network of `MODELS` (Appendix, "Base Architectures")."""

    # a function, or "module:name" with a module of `prslib.models`
    made_by: str | Callable
    stages: int  # the head included
    # ExStream takes its vectors after these stages and freezes them
    vector_stages: int = 1
    # names; empty: the network always begins random
    published_weights: tuple[str, ...] = ()
    default_weights: str = NONE  # one of these names, or "none"
    # the loss that the network's own objective replaces
    objective_for: str | None = None
    # what the paper's tables call it, or what it stands in for
    stands_for: str | None = None
    gpu_share: float = 1.0  # the part of a GPU that one run takes: small ones share it
    # of another, frozen network; else the network takes images
    on_features: bool = False

    @property
    def factory(self) -> Callable:
        """The function of image shape, classes and weights that makes the network."""
        made_by = self.made_by
        return (
            made_by if callable(made_by) else resolve_name(f"prslib.models.{made_by}")
        )

    def begins_with(self, proposed: str | None) -> str:
        """Return the weights that a data set proposes, or else the network's own."""
        return proposed if proposed in self.published_weights else self.default_weights

    def pretrained_stages(self, weights: str) -> int:
        """Return how many stages begin learned: none, or all but the head."""
        return 0 if weights == NONE else self.stages - 1

    def check(self, name: str, loss: str, weights: str) -> None:
        """Refuse losses that the network is not made for, and weights it has not."""
        check_weights(name, weights, self.published_weights)
        if self.objective_for not in (None, loss):
            raise ValueError(
                f"model {name}: its objective is made for data sets trained with "
                f"{self.objective_for}, got one with {loss}; choose a plain network"
            )

    def check_gradients(self, name: str, asking: str) -> None:
        """Refuse single samples' gradients where the objective ties samples."""
        if self.objective_for is not None:
            raise ValueError(
                f"model {name}: {asking} needs the gradient of every single sample, "
                "which is known for networks without an objective of their own; leave "
                "it out or choose a plain network"
            )

    def check_frozen(self, name: str, frozen: int) -> None:
        """Refuse to freeze all of the network."""
        if frozen >= self.stages:
            raise ValueError(
                f"frozen_stages must be at most {self.stages - 1} for model {name}, "
                f"which has {self.stages} stages, got {frozen}; the last stage must "
                "learn"
            )


_IMAGENET: dict[str, Any] = {"default_weights": "IMAGENET1K_V1", "vector_stages": 3}
_RESNET101: dict[str, Any] = {
    "published_weights": ("IMAGENET1K_V1", "IMAGENET1K_V2"),
    **_IMAGENET,
}
_SMALL: dict[str, Any] = {"gpu_share": 1 / 8}
_CONVNET: dict[str, Any] = {"published_weights": (*IN_TURN, *EMBEDDED), **_SMALL}
_MULTILABEL: dict[str, Any] = {"objective_for": "multilabel_soft_margin"}
_RESNET: dict[str, Any] = {"stands_for": "ResNet101"}
_CONSISTENCY: dict[str, Any] = {"stands_for": "Attention Consistency"}
_RECURRENT: dict[str, Any] = {"stands_for": "RNN-Attention"}

MODELS: dict[str, Architecture] = {
    "convnet": Architecture("networks:ConvNet", 4, **_CONVNET, **_RESNET),
    "convnet_attention_consistency": Architecture(
        "attention:convnet_consistency", 4, **_CONVNET, **_MULTILABEL, **_CONSISTENCY
    ),
    "convnet_rnn_attention": Architecture(
        "attention:convnet_recurrent", 4, **_CONVNET, **_MULTILABEL, **_RECURRENT
    ),
    "head": Architecture(
        "networks:head", 2, vector_stages=0, on_features=True, **_SMALL
    ),
    "mlp": Architecture("networks:MLP", 3, **_SMALL),
    "resnet18": Architecture("networks:ResNet18", 6),
    "resnet18_imagenet": Architecture(
        "networks:resnet18", 7, published_weights=("IMAGENET1K_V1",), **_IMAGENET
    ),
    "resnet101": Architecture("networks:resnet101", 7, **_RESNET101, **_RESNET),
    "resnet101_attention_consistency": Architecture(
        "attention:resnet101_consistency",
        6,
        **_RESNET101,
        **_MULTILABEL,
        **_CONSISTENCY,
    ),
    "resnet101_rnn_attention": Architecture(
        "attention:resnet101_recurrent", 6, **_RESNET101, **_MULTILABEL, **_RECURRENT
    ),
}
