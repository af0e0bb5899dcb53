"""The networks, by name; a network's own module, and torch, load when it is made."""

from prslib.models.architecture import Architecture
from prslib.models.weights import EMBEDDED

_IMAGENET = {"default_weights": "IMAGENET1K_V1", "vector_stages": 3}
_RESNET101 = {"published_weights": ("IMAGENET1K_V1", "IMAGENET1K_V2"), **_IMAGENET}
_SMALL = {"gpu_share": 1 / 8}
_CONVNET = {"published_weights": tuple(EMBEDDED), **_SMALL}
_MULTILABEL = {"objective_for": "multilabel_soft_margin"}
_RESNET, _CONSISTENCY, _RECURRENT = (
    {"stands_for": name} for name in ("ResNet101", "Attention Consistency", "RNN-Attention")
)

MODELS: dict[str, Architecture] = {
    "convnet": Architecture("convnet:ConvNet", 4, **_CONVNET, **_RESNET),
    "convnet_attention_consistency": Architecture(
        "attention:convnet_consistency", 4, **_CONVNET, **_MULTILABEL, **_CONSISTENCY
    ),
    "convnet_rnn_attention": Architecture(
        "attention:convnet_recurrent", 4, **_CONVNET, **_MULTILABEL, **_RECURRENT
    ),
    "mlp": Architecture("mlp:MLP", 3, stacks=True, **_SMALL),
    "resnet18": Architecture("resnet18:ResNet18", 6),
    "resnet18_imagenet": Architecture(
        "torchvision_resnet:resnet18", 7, published_weights=("IMAGENET1K_V1",), **_IMAGENET
    ),
    "resnet101": Architecture("torchvision_resnet:resnet101", 7, **_RESNET101, **_RESNET),
    "resnet101_attention_consistency": Architecture(
        "attention:resnet101_consistency", 6, **_RESNET101, **_MULTILABEL, **_CONSISTENCY
    ),
    "resnet101_rnn_attention": Architecture(
        "attention:resnet101_recurrent", 6, **_RESNET101, **_MULTILABEL, **_RECURRENT
    ),
}
