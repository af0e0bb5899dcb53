"""The rows of the main table: how each method trains and who keeps its memory."""

from dataclasses import dataclass

from prslib.samplers import SAMPLERS


@dataclass(frozen=True)
class Method:
    """A row of the main table (Table 1).

    Parameters
    ----------
    sampler : str or None
        Who keeps the memory; without one there is none.
    options : tuple of str
        Fields of `RunConfig` that are handed to the sampler.
    offline : bool
        Whether all tasks are seen at once, shuffled, for ``epochs`` epochs.
    frozen : str or None
        "pretrained_stages" or "vector_stages" of the model's `Architecture`: how many of its stages
        stay as they are.
    ewc : bool
        Whether weights are held by `prslib.training.ewc.EWC`, with strength ``ewc_lambda``.

    Notes
    -----
    The paper freezes its network for two methods. EWC: up to the penultimate layer, "otherwise, it
    works poorly". What is frozen there has learned from ImageNet; a network that has learned
    nothing yet has nothing to be kept, so we freeze the stages that come with learned weights
    and no others. ExStream: through the second residual block, because stored vectors go stale
    when the layers below them learn. That holds for any network: where the weights are random, the
    lower part stays random.
    """

    sampler: str | None = None
    options: tuple[str, ...] = ()
    offline: bool = False
    frozen: str | None = None
    ewc: bool = False

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
        """Whether it needs the gradient of every single sample."""
        needs = SAMPLERS[self.sampler].needs if self.sampler else ()
        return self.ewc or "gradient_products" in needs

    @property
    def looks_at_model(self) -> bool:
        """Whether what the memory keeps depends on the model, so that it takes training to know."""
        return self.sampler is not None and bool(SAMPLERS[self.sampler].needs)


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
