"""Parameters of a notebook, checked before any work starts, and what it saves."""

import hashlib
import re
from ast import literal_eval
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType
from typing import ClassVar, Self, dataclass_transform, get_args, get_origin

import pandas as pd
import yaml
from matplotlib.figure import Figure

from prslib.checks import expected, finite, one_of, whole
from prslib.datasets import DATASETS
from prslib.paths import figures_dir, known_profiles, params_file

LONGEST = 100  # letters of a folder's name


def several(*values: object) -> list:
    """Declare a parameter with a list."""
    return field(default_factory=lambda: list(values))


@dataclass_transform(frozen_default=True, field_specifiers=(several,))
@dataclass(frozen=True)
class Parameters:
    """Parameters of a notebook; each topic's class lists its own with their defaults.

    Such a class is a frozen dataclass, too. Types are checked here, values by what they
    are for: `RunConfig`, the samplers and `run_all`.
    """

    one_label: ClassVar[bool | None] = None  # an image, None where both kinds fit
    profile: str = "quick"

    def __init_subclass__(cls) -> None:
        """Make each topic's class a dataclass."""
        dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        """Refuse values of another type than annotated, and data that do not fit."""
        for each in fields(self):
            value = _typed(each.name, getattr(self, each.name), each.type)
            object.__setattr__(self, each.name, value)
        for name in getattr(self, "dataset", ()):
            loss = DATASETS[one_of("dataset", name, DATASETS)].recipe.loss
            if self.one_label not in (None, loss == "cross_entropy"):
                kind = "one label" if self.one_label else "several labels"
                raise ValueError(expected(f"data with {kind} an image", repr(name)))

    @classmethod
    def topic(cls) -> str:
        """Return the name of the notebook and of the topic's module."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def read(cls, namespace: dict) -> Self:
        """Read the parameters among a notebook's ``globals()``.

        Where a value is the notebook's own, the profile's takes its place.
        """
        usual = asdict(cls())
        values = asdict(cls(**{name: namespace[name] for name in usual}))
        return replace(cls.of(values["profile"]), **_changes(values, usual))

    @classmethod
    def of(cls, profile: str) -> Self:
        """Return the notebook's parameters under a profile."""
        one_of("profile", profile, known_profiles())
        values = parameters(profile, cls.topic())
        for name in values:
            one_of("parameter", name, asdict(cls()))
        return cls(**values | {"profile": profile})

    @property
    def changed(self) -> str:
        """Name the parameters that are not the profile's: "rho=0.1, seeds=[0, 1]"."""
        other = _changes(asdict(self), asdict(self.of(self.profile)))
        if other and self.profile != "quick":
            other = {"profile": self.profile} | other
        return ", ".join(f"{name}={value}" for name, value in other.items())

    @property
    def folder(self) -> Path:
        """``figures/PROFILE``, or ``figures/custom/rho=0.1`` for other parameters."""
        if not self.changed:
            return figures_dir(self.profile)
        name = re.sub(r"[^\w.,=+-]", "", self.changed)
        if len(name) > LONGEST:
            name = name[:LONGEST] + hashlib.sha256(name.encode()).hexdigest()[:8]
        return figures_dir("custom") / name

    def save(self, figure: Figure | None, frame: pd.DataFrame, name: str) -> None:
        """Show and close a figure, if any; write it as PNG and its numbers as CSV."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.topic()}_{name}"
        frame = frame.drop(columns="draws", errors="ignore")  # arrays
        frame.to_csv(f"{file}.csv", index=False, float_format="%.6g")
        if self.changed:  # all parameters beside it, as papermill reads them
            text = yaml.safe_dump(asdict(self), sort_keys=False)
            (self.folder / f"{self.topic()}.yaml").write_text(text, encoding="utf-8")
        if figure is None:
            return
        # slow to load; parameters do not need it
        import matplotlib.pyplot as plt
        from IPython.display import Image, display

        if self.changed:
            figure.suptitle(f"{figure.get_suptitle()}\n{self.changed}".strip())
        figure.savefig(f"{file}.png", metadata={"Software": None})
        plt.close(figure)
        about = {"alt": in_words(figure), "file": f"{file.name}.png"}
        about["width"] = round(figure.get_figwidth() * figure.dpi)
        display(Image(f"{file}.png", metadata=about))

    def _repr_markdown_(self) -> str:
        rows = [f"| `{name}` | {value} |" for name, value in asdict(self).items()]
        where = self.folder.relative_to(figures_dir("custom").parent)
        head = ["| parameter | value |", "|---|---|"]
        return "\n".join([*head, *rows, "", f"Figures: `{where}/`."])


class Trained(Parameters):
    """Parameters of a notebook that trains."""

    dataset: list[str] = several("cocoseq-mini")
    seeds: list[int] = several(0, 1, 2, 3, 4)
    device: str = "cpu"


def parameters(profile: str, notebook: str) -> dict:
    """Return what a profile changes of a notebook's parameters, from its YAML file."""
    with open(params_file(profile, notebook), encoding="utf-8") as file:
        return yaml.safe_load(file)


def _changes(values: dict, usual: dict) -> dict:
    return {name: value for name, value in values.items() if value != usual[name]}


def _typed(name: str, value: object, kind: type) -> object:
    """Return a value of an annotated type; it may come as text, "1e-3" or "0,1,2"."""
    if get_origin(kind) is list:
        if isinstance(value, str):
            items = [text.strip(" []'\"") for text in value.split(",")]
            value = [item for item in items if item]
        if value is None:
            return []
        items = value if isinstance(value, list | tuple) else [value]
        return [_typed(name, item, get_args(kind)[0]) for item in items]
    kinds = get_args(kind) or (kind,)  # of float | None both
    if isinstance(value, str) and str not in kinds:
        with suppress(ValueError, SyntaxError):  # other text is refused below
            value = literal_eval(value)
    if value is None and NoneType in kinds:
        return None
    if str in kinds:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be text, got {value!r}")
        return value
    return whole(name, value, least=0) if int in kinds else finite(name, value)


def in_words(figure: Figure) -> str:
    """Say what a figure shows, for readers who cannot see it: panels, axes, legend."""
    texts = [figure.get_suptitle()]
    marks = []
    for ax in figure.axes:
        axes = " over ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        texts.append(": ".join(filter(None, (ax.get_title("left"), axes))))
        marks += ax.get_legend_handles_labels()[1]
    text = "; ".join(dict.fromkeys(filter(None, texts)))
    text += f". Marks: {', '.join(dict.fromkeys(marks))}" if marks else ""
    return " ".join(re.sub(r"[$\\{}]", "", text).split())
