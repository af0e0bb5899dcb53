"""Describe a run by its configuration, and hold its result."""

import hashlib
import json
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from prslib.checks import (
    VARIANTS,
    check_int,
    check_text,
    expected,
    finite,
    flag,
    one_of,
    plain_options,
    power,
)
from prslib.datasets import DATASETS, SequentialDataset, fingerprint
from prslib.datasets.base import draw_schedule, validate_schedule
from prslib.losses import LOSSES, check_loss_options
from prslib.models import MODELS
from prslib.models.weights import EMBEDDED, NONE, file_of, identity_of, weights_for_seed
from prslib.samplers import SAMPLERS, Sampler, check_options, make_sampler
from prslib.training.methods import METHODS, NEEDS, unread_fields
from prslib.training.rehearsal import (
    ASKS,
    REHEARSALS,
    Rehearsal,
    rehearsal_options,
)

PRECISIONS = ("fp32", "bf16")  # of the forward pass; weights stay in float32
DRAWS = ("uniform", "balanced")  # of replay: over samples, or over classes
MOST_EPOCHS = 10_000  # a run lists the rows of all its epochs
SAVE_EVERY = 300.0  # seconds from one checkpoint to the next
PROTOCOL = 6  # part of every hash; rises when a change of the code changes results
MEASUREMENTS = (
    "test_set",
    "features_per_class",
    "class_draws",
    "own_threshold",
    "variance_points",
)
# in the hash where they are not at their default
ADDED_LATER = ("class_draws", "own_threshold", "draw")


def checked(default: Any, check: Callable, **rules: Any) -> Any:
    """Make a field whose check returns Python's text, int or float, or raises."""
    return field(default=default, metadata={"check": partial(check, **rules)})


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run's result, checked when made (Sec. "Experimental Design").

    A field left at None takes the data set's own value (`prslib.datasets.Recipe`).

    Parameters
    ----------
    dataset, method : str
        Keys of `DATASETS` and `METHODS`.
    seed : int
        Spawns the generators of stream, sampler, replay and model.
    rho : float or None
        Power of allocation of PRS and OCDM, Eq. (1).
    variant : str
        "paper" or "authors": which reading of PRS.
    memory_size : int or None
        Samples in memory.
    schedule : tuple of int or None
        Order of the tasks. For single-label data it is the order of the classes, which
        are trained in pairs; the seed draws it by default, since the paper does not
        publish its own.
    epochs : int
        Epochs of Multitask; the appendix also has 10.
    ewc_lambda : float or None
        Strength of EWC's penalty.
    test_set : str or None
        Which of the data set's test sets: "balanced", "imbalanced", "both", "open" or
        "full".
    model : str or None
        A key of `MODELS`.
    weights : str or None
        The model's initial weights: "none", one of its `Architecture.published_weights`,
        or a file with its state dict. "digits" are five pretrainings, one a seed in
        turn; those learned on ImageNet are fetched once. The default is what the data
        set's recipe names, if the model has it, else `Architecture.default_weights`.
        Models without published weights ignore it.
    frozen_stages : int
        How many of the model's stages are frozen for every method; the paper's table of
        architectures freezes the first residual block. A method may freeze more.
    pretrained_stages : int or None
        How many stages EWC freezes; None for all that begin with learned weights
        (Sec. 6.1).
    learning_rate : float or None
        Step size of the optimiser.
    batch_size, replay_batch_size : int or None
        New and replayed samples a step.
    features_per_class : int
        Of how many test images of a class, at most, `Run.features` keeps the
        penultimate features; 0 for none.
    class_draws : bool
        Whether `Run.resampled` has F1 and AP of every class, too, on the test set of
        its own task; forgetting by class size needs them.
    own_threshold : bool
        Whether F1 is also scored at a threshold of the run's own, beside 0.5. For it
        the run is trained a second time, alike but without a fifth of the training
        samples, which its seed draws. After each task the threshold for all classes is
        the one of 0.01, 0.02 ... 0.99 at which those samples of the tasks seen so far
        score the highest overall C-F1 or, for O-F1, the highest overall O-F1, the
        lowest of equals. Neither test samples nor what the run itself trains on are
        touched. It costs almost a second run.
    variance_points : int
        At how many points of the stream the gradient variance over the memory is
        measured (`prslib.training.gradients`); 0 for none. They are evenly apart, the
        last at the end.
    precision : str or None
        "fp32" or "bf16", with weights, loss and gradients in float32.
    options : dict or None
        Options of the method's sampler beside ``rho`` and ``variant``: its keyword-only
        parameters, in numbers or text; and of its rehearsal, such as ``alpha`` of
        DER++. They are kept as sorted pairs.
    loss : str or None
        A key of `prslib.losses.LOSSES`.
    loss_options : dict or None
        Options of the loss, kept likewise.
    draw : str
        How replay batches are drawn from the memory: "uniform" over its samples, or
        "balanced" over its classes.

    Raises
    ------
    TypeError
        If a field has the wrong type, or sampler or loss do not have such an option.
    ValueError
        If a field's value is out of range or unknown, or if model or loss are not made
        for the data set or the method.
    FileNotFoundError
        If the file of the model's weights is not there.

    Examples
    --------
    >>> RunConfig(dataset="digits70tiny", method="CRS").resolved["memory_size"]
    50
    >>> RunConfig(method="GSS", options={"subsets": 5}).options
    (('subsets', 5),)
    """

    dataset: str = checked("digits70seq", one_of, names=DATASETS)
    method: str = checked("PRS", one_of, names=METHODS)
    seed: int = checked(0, check_int, least=0)
    rho: float | None = checked(None, power)
    variant: str = checked("paper", one_of, names=VARIANTS)
    memory_size: int | None = checked(None, check_int, least=1)
    schedule: tuple[int, ...] | None = None
    epochs: int = checked(1, check_int, least=1, most=MOST_EPOCHS)
    ewc_lambda: float | None = checked(None, finite, least=0)
    test_set: str | None = checked(None, check_text)
    model: str | None = checked(None, one_of, names=MODELS)
    weights: str | None = checked(None, check_text)
    frozen_stages: int = checked(0, check_int, least=0)
    pretrained_stages: int | None = checked(None, check_int, least=0)
    # at 0 nothing is learned
    learning_rate: float | None = checked(None, finite, least=1e-12)
    batch_size: int | None = checked(None, check_int, least=1)
    replay_batch_size: int | None = checked(None, check_int, least=1)
    features_per_class: int = checked(0, check_int, least=0)
    class_draws: bool = checked(False, flag)
    own_threshold: bool = checked(False, flag)
    variance_points: int = checked(0, check_int, least=0)
    precision: str | None = checked(None, one_of, names=PRECISIONS)
    options: dict | tuple | None = None
    loss: str | None = checked(None, one_of, names=LOSSES)
    loss_options: dict | tuple | None = None
    draw: str = checked("uniform", one_of, names=DRAWS)

    def __post_init__(self):
        """Refuse fields of a wrong type or value."""
        values = vars(self)  # which may change, though no attribute may
        for row in fields(self):  # 1, 1.0 and numpy's are one configuration
            name = row.name
            check = row.metadata.get("check")
            is_open = values[name] is None and row.default is None
            if check and not is_open:
                values[name] = check(name, values[name])
        recipe = vars(DATASETS[self.dataset].recipe)
        for row in fields(self):  # of a registered data set, it may be wrong
            check = row.metadata.get("check")
            if check and recipe.get(row.name) is not None:
                check(row.name, recipe[row.name])
        if self.schedule is not None:
            tasks = len(DATASETS[self.dataset].recipe.schedule)
            values["schedule"] = validate_schedule(self.schedule, tasks)
        values["options"] = self._checked_options()
        values["loss_options"] = self._checked_loss_options()
        self._check_rehearsal()
        self._check_model()

    def _checked_options(self) -> tuple[tuple[str, object], ...] | None:
        """Return the sampler's and the rehearsal's options as sorted pairs, or None."""
        options = _as_dict("options", self.options)
        method = METHODS[self.method]
        if method.rehearsal is not None:
            one_of("rehearsal", method.rehearsal, REHEARSALS)
        if method.sampler is None:
            if options:
                raise TypeError(expected(f"no options of {self.method}", options))
            return None
        one_of("sampler", method.sampler, SAMPLERS)
        needs = getattr(SAMPLERS[method.sampler], "needs", None)
        if not isinstance(needs, Set) or needs - NEEDS:
            names = " and ".join(sorted(NEEDS))
            what = f"needs of {method.sampler} as a set, of {names}"
            raise TypeError(expected(what, repr(needs)))
        settings = {name: getattr(self, name) for name in method.options}
        if settings.keys() & options:
            what = f"{' and '.join(settings)} as fields of RunConfig"
            raise TypeError(expected(what, f"options {options}"))
        others = rehearsal_options(method.rehearsal)
        of_sampler = {k: v for k, v in options.items() if k not in others}
        try:
            parameters = check_options(method.sampler, settings | of_sampler)
        except TypeError as error:
            further = f"; of {method.rehearsal}: {', '.join(others)}" if others else ""
            raise TypeError(f"{error}{further}") from None
        if shared := others.keys() & parameters.keys():
            what = f"other names in {method.rehearsal} than in {method.sampler}"
            raise ValueError(expected(f"options with {what}", ", ".join(shared)))
        defaults = {name: row.default for name, row in parameters.items()}
        options = plain_options(self.method, defaults | others, options)
        return tuple(sorted(options.items())) or None

    def _checked_loss_options(self) -> tuple[tuple[str, object], ...] | None:
        """Return the loss's options as sorted pairs; None for none."""
        options = _as_dict("loss_options", self.loss_options)
        options = check_loss_options(self.resolved["loss"], options)
        return tuple(sorted(options.items())) or None

    def _check_rehearsal(self) -> None:
        method = METHODS[self.method]
        name = method.rehearsal
        if name is None:
            return
        self.make_rehearsal()  # which checks its options
        if unknown := set(REHEARSALS[name].asks) - ASKS.keys():
            what = f"asks of {name} among {', '.join(sorted(ASKS))}"
            raise ValueError(expected(what, ", ".join(sorted(unknown))))
        settings = self.resolved
        if method.sampler is None:
            what = f"a sampler, whose memory {name} replays"
            raise ValueError(expected(what, f"none in the method {self.method}"))
        if method.merges_samples:
            what = f"a sampler that keeps samples for {name}"
            raise ValueError(expected(what, method.sampler, "it merges them"))
        if MODELS[settings["model"]].objective_for:  # which sees a batch as a whole
            what = f"a plain network for {name}"
            raise ValueError(expected(what, settings["model"]))

    def make_rehearsal(self) -> Rehearsal | None:
        """Make what a step lowers beside the mean loss; None for that alone."""
        name = METHODS[self.method].rehearsal
        if name is None:
            return None
        takes = rehearsal_options(name)
        options = dict(self.options or ())
        return REHEARSALS[name](**{k: v for k, v in options.items() if k in takes})

    def _check_model(self) -> None:
        settings = self.resolved
        dataset = DATASETS[self.dataset]
        name = settings["model"]
        weights = settings["weights"]
        model = MODELS[name]
        usual = dataset.recipe.model
        if model.on_features != MODELS[usual].on_features:  # else of images
            what = f"a model for the inputs of {self.dataset}, such as {usual}"
            raise ValueError(expected(what, name))
        frozen = max(self.frozen_stages, self.pretrained_stages or 0)
        model.check(name, settings["loss"], weights, frozen)
        first_weights = file_of(weights_for_seed(weights, self.seed))
        if dataset.tests_on_pretrained and first_weights in EMBEDDED.values():
            what = f"weights that have not learned from test images of {self.dataset}"
            raise ValueError(expected(what, weights, f"choose {NONE!r}"))
        by_sample = METHODS[self.method].looks_at_gradients or self.variance_points
        if by_sample and model.objective_for:  # which ties the samples of a batch
            what = f"a plain network for the samples' gradients of {self.method}"
            raise ValueError(expected(what, name, "leave out variance_points, too"))

    @property
    def resolved(self) -> dict:
        """All fields; the data set's recipe fills in those at None."""
        recipe = dict(vars(DATASETS[self.dataset].recipe))
        if recipe.pop("schedule_drawn"):
            recipe["schedule"] = draw_schedule(len(recipe["schedule"]), self.seed)
        chosen = {k: value for k, value in vars(self).items() if value is not None}
        model = MODELS[chosen.get("model", recipe["model"])]
        usual = model.begins_with(recipe["weights"])
        weights = chosen.get("weights", usual) if model.published_weights else NONE
        recipe["pretrained_stages"] = model.pretrained_stages(weights)
        recipe["vector_stages"] = model.vector_stages
        return recipe | chosen | {"weights": weights}

    @property
    def identity(self) -> dict:
        """The resolved fields that change this run's result, and no others."""
        unread = unread_fields(self.method)
        values = {k: v for k, v in self.resolved.items() if k not in unread}
        values["weights"] = identity_of(weights_for_seed(values["weights"], self.seed))
        for row in fields(self):
            name = row.name
            if name in ADDED_LATER and values.get(name) == row.default:
                del values[name]
        if self.options:
            values["options"] = dict(self.options)
        if self.loss_options:
            values["loss_options"] = dict(self.loss_options)
        return values | {"data": fingerprint(self.dataset), "protocol": PROTOCOL}

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits over `identity`."""
        return _digest(self.identity)

    @property
    def training_hash(self) -> str:
        """Twelve hexadecimal digits, equal for runs that differ in `MEASUREMENTS`."""
        identity = self.identity
        return _digest({k: identity[k] for k in identity if k not in MEASUREMENTS})

    training = training_hash  # its name before

    def sampler_for(
        self, dataset: SequentialDataset, seed: np.random.SeedSequence
    ) -> Sampler | None:
        """Make a run's empty sampler; None for a method without a memory."""
        settings = self.resolved
        method = METHODS[self.method]
        if method.sampler is None:
            return None
        options = {name: settings[name] for name in method.options}
        others = rehearsal_options(method.rehearsal)
        pairs = self.options or ()
        options |= {name: value for name, value in pairs if name not in others}
        size = settings["memory_size"]
        classes = dataset.num_classes
        return make_sampler(method.sampler, size, classes, seed, **options)


def _as_dict(name: str, options: object) -> dict:
    """Return options, a dict or pairs, as a dict; none for None."""
    if options is None:
        return {}
    if isinstance(options, Mapping | tuple | list):
        with suppress(TypeError, ValueError):  # no pairs
            return dict(options)
    raise TypeError(f"{name} must be a dict, got {options!r}")


def _digest(identity: dict) -> str:
    values = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(values.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Run:
    """The scores of a run, its memory at the end, and further measurements.

    Parameters
    ----------
    config : RunConfig
        The configuration.
    scores : DataFrame
        Tidy: dataset, method, rho, memory_size, schedule, seed, trained_tasks, task,
        group, metric, value. Where the method has no rho or no memory, rho is NaN and
        memory_size 0. A schedule reads "0,3,1,2", or "1+2,3+4" where tasks are trained
        together.
    memory_labels : ndarray of bool, (memory_size, C)
        Labels in memory at the end; (0, C) for a method without one. Each vector of
        ExStream counts once, with its one label, however many samples it merges.
    features : ndarray of float32, (N, D), or None
        What the head sees at the end of the test images that
        `prslib.datasets.curation.feature_rows` names; None where none are asked for.
    gradient_variance : DataFrame or None
        Tidy: the first six columns of the scores, images (of the stream so far),
        samples (in memory), value (`prslib.training.gradients.gradient_variance`).
        None where none is asked for or the method has no memory.
    resampled : DataFrame or None
        Scores on `Recipe.test_resamples` resamples of the test images, float16 in
        [0, 1]: a column a resample, the rows those of `scores` with the same index.
        They are the scores of the class groups, task by task C-F1, O-F1, mAP and
        accuracy alone. None where the data set has none.
    record : dict or None
        How it was computed: device, card (or kind of processor), versions of torch,
        numpy and cuDNN, tf32, and the steps and wall seconds of the training with its
        scores. None where that is not known.
    """

    config: RunConfig
    scores: pd.DataFrame
    memory_labels: np.ndarray
    features: np.ndarray | None = None
    gradient_variance: pd.DataFrame | None = None
    resampled: pd.DataFrame | None = None
    record: dict | None = None
