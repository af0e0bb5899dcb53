"""The networks, by name; a network's own module, and torch, load when it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name

from prslib.models.weights import EMBEDDED, NONE, check_weights


@dataclass(frozen=True)
class Architecture:
    """A network of `prslib.models.MODELS` (Appendix, "Base Architectures").

    Parameters
    ----------
    made_by : str
        Where its `factory` is, "module:name" with a module of `prslib.models`.
    stages : int
        Its stages, the head included.
    vector_stages : int
        After how many of them ExStream takes its vectors, and up to where it freezes the network.
    published_weights : tuple of str
        Names of weights that can be had for it; empty where it always begins with random ones.
    default_weights : str
        What it begins with where nothing is asked for, one of these names or "none".
    objective_for : str or None
        Where it brings an objective of its own: the loss of the recipes that this goes with.
    stands_for : str or None
        What the paper's tables call it, or what it stands in for.
    gpu_share : float
        What part of a GPU one run takes, so that several small ones share it; 1 for all of it.
    stacks : bool
        Whether runs may be trained as one by `prslib.experiments.stacked`: it has no state but its
        weights, and is so small that a GPU waits for the next kernel more than it computes.

    Examples
    --------
    >>> Architecture("networks:ConvNet", stages=4).pretrained_stages("none")
    0
    """

    made_by: str
    stages: int
    vector_stages: int = 1
    published_weights: tuple[str, ...] = ()
    default_weights: str = NONE
    objective_for: str | None = None
    stands_for: str | None = None
    gpu_share: float = 1.0
    stacks: bool = False

    @property
    def factory(self) -> Callable:
        """What takes image_shape and num_classes, and weights where there are published ones.

        It returns the network, a `torch.nn.Module`; looked for here, its module is loaded.
        """
        return resolve_name(f"prslib.models.{self.made_by}")

    def begins_with(self, proposed: str | None) -> str:
        """Return the weights that a data set proposes, or the default if there are none of them."""
        return proposed if proposed in self.published_weights else self.default_weights

    def pretrained_stages(self, weights: str) -> int:
        """Return how many stages, from the image to below the head, begin with learned weights."""
        return 0 if weights == NONE else self.stages - 1

    def check(self, name: str, loss: str, weights: str) -> None:
        """Refuse a data set that the network is not made for, and weights that it cannot have.

        Parameters
        ----------
        name : str
            The network's name, for the message.
        loss : str
            The loss that the data set's recipe names.
        weights : str
            What it is to begin with.

        Raises
        ------
        ValueError
            If the loss is another than its objective goes with.
        FileNotFoundError
            If the weights are none of ours and no file.
        """
        check_weights(name, weights, self.published_weights)
        if self.objective_for not in (None, loss):
            raise ValueError(
                f"model {name}: its objective is made for data sets trained with "
                f"{self.objective_for}, got one with {loss}; choose a plain network"
            )

    def check_gradients(self, name: str, asking: str) -> None:
        """Refuse what looks at gradients where single samples have none of their own.

        Parameters
        ----------
        name : str
            The network's name, for the message.
        asking : str
            Who needs the gradient of every single sample.

        Raises
        ------
        ValueError
            If the network has an objective of its own.
        """
        if self.objective_for is not None:
            raise ValueError(
                f"model {name}: {asking} needs the gradient of every single sample, which is known "
                "for networks without an objective of their own; leave it out or choose a plain "
                "network"
            )

    def check_frozen(self, name: str, frozen: int) -> None:
        """Refuse to freeze all of the network.

        Parameters
        ----------
        name : str
            The network's name, for the message.
        frozen : int
            How many stages are to be frozen.

        Raises
        ------
        ValueError
            If no stage would learn.
        """
        if frozen >= self.stages:
            raise ValueError(
                f"frozen_stages must be at most {self.stages - 1} for model {name}, which has "
                f"{self.stages} stages, got {frozen}; the last stage must learn"
            )


_IMAGENET = {"default_weights": "IMAGENET1K_V1", "vector_stages": 3}
_RESNET101 = {"published_weights": ("IMAGENET1K_V1", "IMAGENET1K_V2"), **_IMAGENET}
_SMALL = {"gpu_share": 1 / 8}
_CONVNET = {"published_weights": tuple(EMBEDDED), **_SMALL}
_MULTILABEL = {"objective_for": "multilabel_soft_margin"}
_RESNET, _CONSISTENCY, _RECURRENT = (
    {"stands_for": name} for name in ("ResNet101", "Attention Consistency", "RNN-Attention")
)

MODELS: dict[str, Architecture] = {
    "convnet": Architecture("networks:ConvNet", 4, **_CONVNET, **_RESNET),
    "convnet_attention_consistency": Architecture(
        "attention_consistency:convnet_consistency", 4, **_CONVNET, **_MULTILABEL, **_CONSISTENCY
    ),
    "convnet_rnn_attention": Architecture(
        "rnn_attention:convnet_recurrent", 4, **_CONVNET, **_MULTILABEL, **_RECURRENT
    ),
    "mlp": Architecture("networks:MLP", 3, stacks=True, **_SMALL),
    "resnet18": Architecture("networks:ResNet18", 6),
    "resnet18_imagenet": Architecture(
        "networks:resnet18", 7, published_weights=("IMAGENET1K_V1",), **_IMAGENET
    ),
    "resnet101": Architecture("networks:resnet101", 7, **_RESNET101, **_RESNET),
    "resnet101_attention_consistency": Architecture(
        "attention_consistency:resnet101_consistency",
        6,
        **_RESNET101,
        **_MULTILABEL,
        **_CONSISTENCY,
    ),
    "resnet101_rnn_attention": Architecture(
        "rnn_attention:resnet101_recurrent", 6, **_RESNET101, **_MULTILABEL, **_RECURRENT
    ),
}
