"""List the networks by name; torch and a network's module are imported when it is made."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from prslib.models.weights import EMBEDDED, IN_TURN, NONE


@dataclass(frozen=True)
class Architecture:
    """Network as a row of `MODELS` (Appendix, "Base Architectures").

    Parameters
    ----------
    made_by : callable or str
        Function ``made_by(input_shape, num_classes)`` that returns a
        `prslib.models.networks.Staged`, or "module:name" of such a function in
        `prslib.models`. If there is a ``backbone``, the function receives the
        backbone's result instead of the shape.
    stages : int
        Number of stages, including the head.
    vector_stages : int
        Number of stages that ExStream freezes. ExStream stores the outputs of the last
        of these stages as vectors.
    published_weights : tuple of str
        Names of initial weights of the backbone; empty if weights are always random.
    default_weights : str
        One of the ``published_weights``, or "none" for random weights.
    objective_for : str or None
        Loss that the network replaces by its special objective.
    stands_for : str or None
        Network in the paper's tables with which this network is compared.
    gpu_share : float
        Part of a GPU that one run needs; runs of small networks share a GPU.
    backbone : callable, str or None
        Function ``backbone(image_shape, weights)``, or "module:name" of such a
        function. It returns the stages below the head, the module that pools the map
        from these stages, and the number of features after pooling.

    See Also
    --------
    prslib.register : Registers a network under a name.
    """

    made_by: str | Callable
    stages: int
    vector_stages: int = 1
    published_weights: tuple[str, ...] = ()
    default_weights: str = NONE
    objective_for: str | None = None
    stands_for: str | None = None
    gpu_share: float = 1.0
    backbone: str | Callable | None = None

    def begins_with(self, proposed: str | None) -> str:
        """Return the weights that a data set proposes, or the default if they do not fit."""
        return proposed if proposed in self.published_weights else self.default_weights

    def pretrained_stages(self, weights: str) -> int:
        """Return the number of stages with pretrained weights: none, or all but the head."""
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
