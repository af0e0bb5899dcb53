"""List the networks by name; torch and a network's own module load when it is made."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from prslib.models.weights import EMBEDDED, IN_TURN, NONE


@dataclass(frozen=True)
class Architecture:
    """A network of `MODELS` (Appendix, "Base Architectures")."""

    # a function of image shape and classes or, with a backbone, of its result and
    # classes; or "module:name" of one in `prslib.models`
    made_by: str | Callable
    stages: int  # the head included
    # ExStream takes its vectors after these stages and freezes them
    vector_stages: int = 1
    # names, of the backbone; empty: the network always begins random
    published_weights: tuple[str, ...] = ()
    # one of these names, or "none"
    default_weights: str = NONE
    # the loss that the network's own objective replaces
    objective_for: str | None = None
    # what the paper's tables call it, or what it stands in for
    stands_for: str | None = None
    # the part of a GPU that one run takes: small ones share it
    gpu_share: float = 1.0
    # likewise a function, of image shape and weights: the stages below the head, what
    # pools their map, and its width
    backbone: str | Callable | None = None

    def begins_with(self, proposed: str | None) -> str:
        """Return the weights that a data set proposes, or else the network's own."""
        return proposed if proposed in self.published_weights else self.default_weights

    def pretrained_stages(self, weights: str) -> int:
        """Return how many stages begin learned: none, or all but the head."""
        return 0 if weights == NONE else self.stages - 1


_CONVNET = Architecture(
    "networks:convnet",
    stages=4,
    backbone="networks:convnet_backbone",
    published_weights=(*IN_TURN, *EMBEDDED),
    stands_for="ResNet101",
    gpu_share=1 / 8,
)
_RESNET101 = Architecture(
    "networks:resnet",
    stages=7,
    backbone="networks:resnet101_backbone",
    vector_stages=3,
    published_weights=("IMAGENET1K_V1", "IMAGENET1K_V2"),
    default_weights="IMAGENET1K_V1",
    stands_for="ResNet101",
)
_CONSISTENCY = {
    "made_by": "attention:AttentionConsistency",
    "objective_for": "multilabel_soft_margin",
    "stands_for": "Attention Consistency",
}
_RECURRENT = {
    "made_by": "attention:RNNAttention",
    "objective_for": "multilabel_soft_margin",
    "stands_for": "RNN-Attention",
}

MODELS: dict[str, Architecture] = {
    "convnet": _CONVNET,
    "convnet_attention_consistency": replace(_CONVNET, **_CONSISTENCY),
    "convnet_rnn_attention": replace(_CONVNET, **_RECURRENT),
    "head": Architecture("networks:head", 2, vector_stages=0, gpu_share=1 / 8),
    "mlp": Architecture("networks:mlp", 3, gpu_share=1 / 8),
    "resnet18": Architecture("networks:resnet18", 6),
    "resnet101": _RESNET101,
    "resnet101_attention_consistency": replace(_RESNET101, stages=6, **_CONSISTENCY),
    "resnet101_rnn_attention": replace(_RESNET101, stages=6, **_RECURRENT),
}
