"""List the methods of the main table: how each trains and which sampler keeps its memory."""

from dataclasses import dataclass

from prslib.samplers import SAMPLERS


@dataclass(frozen=True)
class Method:
    """A row of the main table (Table 1)."""

    sampler: str | None = None  # a key of `SAMPLERS`; None for a method without a memory
    options: tuple[str, ...] = ()  # fields of `RunConfig` that the sampler takes
    offline: bool = False  # all tasks at once, shuffled, for ``epochs`` epochs
    frozen: str | None = None  # "pretrained_stages" or "vector_stages": those of the model
    ewc: bool = False  # `prslib.training.learner.EWC` holds the weights

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields of `RunConfig` that change this method's result and not every method's."""
        always = ("memory_size", "replay_batch_size", "variance_points")
        memory = (*always, *self.options) if self.sampler else ()
        frozen = (self.frozen,) if self.frozen else ()
        ewc = ("ewc_lambda",) if self.ewc else ()
        return (*memory, *frozen, *ewc, "epochs" if self.offline else "schedule")

    @property
    def looks_at_gradients(self) -> bool:
        """Tell whether it needs the gradient of every single sample."""
        needs = SAMPLERS[self.sampler].needs if self.sampler else ()
        return self.ewc or "gradient_products" in needs

    @property
    def looks_at_model(self) -> bool:
        """Tell whether its memory depends on the model, so that it is known only after training."""
        return self.sampler is not None and bool(SAMPLERS[self.sampler].needs)


# The paper freezes its network for two methods. EWC: up to the penultimate layer, "otherwise, it
# works poorly". There the frozen part has learned from ImageNet; random weights hold nothing to
# keep, so only stages that begin with learned weights are frozen. ExStream: through the second
# residual block, because stored vectors go stale when the layers below them learn. That holds for
# random weights too, so those stages are frozen whatever their weights.
METHODS = {
    "Multitask": Method(offline=True),
    "Finetune": Method(),
    "EWC": Method(ewc=True, frozen="pretrained_stages"),
    "CRS": Method(sampler="crs"),
    "GSS": Method(sampler="gss"),
    "ExStream": Method(sampler="exstream", frozen="vector_stages"),
    "PRS": Method(sampler="prs", options=("rho", "variant")),
    "CBRS": Method(sampler="cbrs"),
    "OCDM": Method(sampler="ocdm", options=("rho",)),
}
