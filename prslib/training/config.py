"""Describe a run by its configuration, and hold its result."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from inspect import Parameter

import numpy as np
import pandas as pd

from prslib.checks import VARIANTS, expected, finite, one_of, power, whole
from prslib.datasets import (
    DATASETS,
    SequentialDataset,
    draw_schedule,
    fingerprint,
    validate_schedule,
)
from prslib.datasets.base import task_name, tasks_together
from prslib.models import MODELS
from prslib.models.weights import EMBEDDED, NONE, file_of, identity_of, of_seed
from prslib.samplers import Sampler, make_sampler
from prslib.training.methods import METHODS, SAMPLER_FIELDS

PRECISIONS = ("fp32", "tf32", "bf16")  # `prslib.training.device.Precision`
TEST_SETS = ("balanced", "imbalanced", "full")
SAVE_EVERY = 300.0  # seconds from one checkpoint to the next
PROTOCOL = 4  # part of every hash; rises when a change of the code changes results
# A hash leaves fields out at these values: runs kept theirs when the fields were added.
UNHASHED_DEFAULTS = {
    "precision": "fp32",
    "features_per_class": 0,
    "variance_points": 0,
    "test_resamples": 0,
}
MEASUREMENTS = ("test_set", "features_per_class", "variance_points")

COUNT, SIZE = partial(whole, least=0), partial(whole, least=1)
NUMBERS = {  # each check refuses a wrong value and returns Python's int or float
    "seed": COUNT,
    "epochs": SIZE,
    "frozen_stages": COUNT,
    "pretrained_stages": COUNT,
    "features_per_class": COUNT,
    "variance_points": COUNT,
    "memory_size": SIZE,
    "batch_size": SIZE,
    "replay_batch_size": SIZE,
    "rho": power,
    "ewc_lambda": finite,
    "learning_rate": finite,
}


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
    rho : float
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
        Strength of EWC's penalty, 0 or above.
    test_set : str or None
        "balanced", "imbalanced" or "full": which of the data set's test sets.
    model : str or None
        A key of `MODELS`.
    weights : str or None
        The model's first weights: "none", one of its `Architecture.published_weights`,
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
    variance_points : int
        At how many points of the stream the gradient variance over the memory is
        measured (`prslib.training.gradients`); 0 for none. They are evenly apart, the
        last at the end.
    precision : str or None
        "fp32", "tf32" or "bf16" (`prslib.training.device.Precision`).
    options : dict or None
        Options of the method's sampler beside ``rho`` and ``variant``: its keyword-only
        parameters, in numbers or text. They are kept as sorted pairs.

    Raises
    ------
    TypeError
        If a field has the wrong type, or the sampler does not have such an option.
    ValueError
        If a field's value is out of range or unknown, or if the model is not made for
        the data set or the method.
    FileNotFoundError
        If the file of the model's weights is not there.

    Examples
    --------
    >>> RunConfig(dataset="digits70tiny", method="CRS").resolved["memory_size"]
    50
    >>> RunConfig(method="GSS", options={"subsets": 5}).options
    (('subsets', 5),)
    """

    dataset: str = "digits70seq"
    method: str = "PRS"
    seed: int = 0
    rho: float = 0.0
    variant: str = "paper"
    memory_size: int | None = None
    schedule: tuple[int, ...] | None = None
    epochs: int = 1
    ewc_lambda: float | None = None
    test_set: str | None = None
    model: str | None = None
    weights: str | None = None
    frozen_stages: int = 0
    pretrained_stages: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    replay_batch_size: int | None = None
    features_per_class: int = 0
    variance_points: int = 0
    precision: str | None = None
    options: dict | tuple | None = None

    def __post_init__(self):
        """Refuse fields of a wrong type or value."""
        names = {
            "dataset": DATASETS,
            "method": METHODS,
            "variant": VARIANTS,
            "precision": PRECISIONS,
            "test_set": TEST_SETS,
            "model": MODELS,
        }
        for field, values in names.items():
            if not self._left_to_recipe(field):
                one_of(field, getattr(self, field), values)
        for field, check in NUMBERS.items():  # 1, 1.0 and numpy's are one configuration
            if not self._left_to_recipe(field):
                self._set(field, check(field, getattr(self, field)) + 0)  # no -0.0
        if self.ewc_lambda is not None and self.ewc_lambda < 0:
            raise ValueError(expected("ewc_lambda of 0 or above", self.ewc_lambda))
        if self.learning_rate is not None and self.learning_rate <= 0:
            raise ValueError(expected("learning_rate above 0", self.learning_rate))
        if self.schedule is not None:
            tasks = len(DATASETS[self.dataset].recipe.schedule)
            self._set("schedule", validate_schedule(self.schedule, tasks))
        self._set("options", self._checked_options())
        self._check_model()

    def _left_to_recipe(self, field: str) -> bool:
        is_none = getattr(self, field) is None
        return is_none and getattr(RunConfig, field) is None  # the field's default

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)  # the way of frozen dataclasses

    def _checked_options(self) -> tuple[tuple[str, object], ...] | None:
        """Return the sampler's options as sorted pairs; None for none."""
        try:
            options = dict(self.options or ())
        except (TypeError, ValueError):
            what = "options as a dict of the sampler's options"
            advice = "give for example {'alpha': 2.0}"
            raise TypeError(expected(what, repr(self.options), advice)) from None
        defaults = METHODS[self.method].defaults
        needed = [name for name, value in defaults.items() if value is Parameter.empty]
        for name in {*options, *needed}:
            if name not in options or name not in defaults:
                what = f"options of {self.method} among {', '.join(defaults) or 'none'}"
                advice = f"needed: {', '.join(needed) or 'none'}; "
                advice += f"{' and '.join(SAMPLER_FIELDS)} are fields"
                raise TypeError(expected(what, ", ".join(options) or "none", advice))
        for name, value in options.items():
            if isinstance(value, np.generic):
                value = options[name] = value.item()
            if float in (type(value), type(defaults[name])):
                value = options[name] = finite(name, value)
            if not isinstance(value, bool | int | float | str | None):
                what = f"option {name} as a number, text, True, False or None"
                raise TypeError(expected(what, repr(value)))
        return tuple(sorted(options.items())) or None

    def _check_model(self) -> None:
        if self.weights is not None and not isinstance(self.weights, str):
            raise TypeError(expected("weights as text or None", repr(self.weights)))
        settings, method = self.resolved, METHODS[self.method]
        name = settings["model"]
        model = MODELS[name]
        kinds = ("images", "features of images")
        takes = MODELS[DATASETS[self.dataset].recipe.model].on_features
        if model.on_features != takes:
            fitting = [key for key, row in MODELS.items() if row.on_features == takes]
            what = f"a model of {kinds[takes]} for {self.dataset}"
            advice = f"choose one of {', '.join(fitting)}"
            raise ValueError(expected(what, name, advice))
        model.check(name, settings["loss"], settings["weights"])
        first_weights = file_of(of_seed(settings["weights"], self.seed))
        tests_on_them = DATASETS[self.dataset].tests_on_pretrained
        if tests_on_them and first_weights in EMBEDDED.values():
            what = f"weights that have not learned from test images of {self.dataset}"
            advice = f"choose {NONE!r} or another data set"
            raise ValueError(expected(what, settings["weights"], advice))
        if method.looks_at_gradients:
            model.check_gradients(name, self.method)
        elif self.variance_points:
            model.check_gradients(name, "variance_points")
        model.check_frozen(name, max(self.frozen_stages, self.pretrained_stages or 0))

    @property
    def resolved(self) -> dict:
        """All fields; the data set's recipe fills in those at None."""
        recipe = dict(vars(DATASETS[self.dataset].recipe))
        if recipe.pop("schedule_drawn"):
            recipe["schedule"] = draw_schedule(len(recipe["schedule"]), self.seed)
        fields = {k: value for k, value in vars(self).items() if value is not None}
        model = MODELS[fields.get("model", recipe["model"])]
        weights = fields.pop("weights", model.begins_with(recipe.pop("weights")))
        weights = weights if model.published_weights else NONE
        recipe["pretrained_stages"] = model.pretrained_stages(weights)
        recipe["vector_stages"] = model.vector_stages
        return recipe | fields | {"weights": weights}

    @property
    def identity(self) -> dict:
        """The resolved fields that change this run's result, and no others."""
        # fields that other methods read and this one does not
        unread = {name for method in METHODS.values() for name in method.reads}
        unread -= set(METHODS[self.method].reads)
        fields = {
            name: value
            for name, value in self.resolved.items()
            if name not in unread and (name, value) not in UNHASHED_DEFAULTS.items()
        }
        fields["weights"] = identity_of(of_seed(fields["weights"], self.seed))
        if self.options:
            fields["options"] = dict(self.options)
        return fields | {"data": fingerprint(self.dataset), "protocol": PROTOCOL}

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits over `identity`."""
        return _digest(self.identity)

    @property
    def training(self) -> str:
        """Twelve hexadecimal digits, equal for runs that differ in `MEASUREMENTS`."""
        identity = self.identity
        return _digest({k: identity[k] for k in identity if k not in MEASUREMENTS})

    def sampler_for(
        self, dataset: SequentialDataset, seed: np.random.SeedSequence
    ) -> Sampler | None:
        """Make a run's empty sampler; None for a method without a memory."""
        settings, method = self.resolved, METHODS[self.method]
        if method.sampler is None:
            return None
        options = {name: settings[name] for name in method.options}
        options |= dict(self.options or ())
        size, classes = settings["memory_size"], dataset.num_classes
        return make_sampler(method.sampler, size, classes, seed, **options)

    def check(self, dataset: SequentialDataset) -> None:
        """Raise ValueError where the configuration does not fit the data set."""
        settings, tasks = self.resolved, dataset.train.task
        size = self.identity.get("memory_size", 0)
        if size > len(tasks):
            what = f"memory_size up to the {len(tasks)} images of {self.dataset}"
            raise ValueError(expected(what, size))
        if settings["test_set"] not in dataset.tests:
            what = f"test_set of {self.dataset} among {', '.join(dataset.tests)}"
            raise ValueError(expected(what, settings["test_set"]))
        validate_schedule(settings["schedule"], dataset.num_tasks)
        if self.options:  # the sampler refuses values that are out of range
            self.sampler_for(dataset, np.random.SeedSequence(0))
        groups = tasks_together(settings["schedule"], settings["tasks_at_once"])
        if METHODS[self.method].offline:
            groups = [settings["schedule"]]
        images, group = min(
            (int(np.isin(tasks, group).sum()), group) for group in groups
        )
        if settings["batch_size"] > images:  # training leaves out incomplete batches
            what = f"batch_size up to the {images} images of task {task_name(group)}"
            raise ValueError(
                expected(f"{what} in {self.dataset}", settings["batch_size"])
            )


def _digest(identity: dict) -> str:
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


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
        trained_tasks, task ("seen"), group, metric, and draws: the score under each of
        `Recipe.test_resamples` weightings of the test images
        (`prslib.resamples.resampled`), in [0, 1]. None where the data set has none.
    """

    config: RunConfig
    scores: pd.DataFrame
    memory_labels: np.ndarray
    features: np.ndarray | None = None
    gradient_variance: pd.DataFrame | None = None
    resampled: pd.DataFrame | None = None
