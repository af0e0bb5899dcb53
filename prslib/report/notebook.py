"""Parameters of a notebook, checked before any work starts, and what it saves."""

import ast
import hashlib
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import ClassVar, Self, get_args, get_origin

import pandas as pd
import yaml
from matplotlib.figure import Figure

from prslib.checks import finite, one_of, whole
from prslib.datasets import DATASETS
from prslib.paths import figures_dir, params_file

PROFILES = ("smoke", "quick", "seeds", "laptop", "paper")
DEVICES = ("cpu", "cuda")
LONGEST = 100  # letters of a folder's name


def several(*values: object, least: int = 1) -> list:
    """Declare a parameter with a list; ``least`` is 0 where it may be empty."""
    return field(default_factory=lambda: list(values), metadata={"least": least})


@dataclass(frozen=True)
class Settings:
    """Parameters of a notebook; each topic's class lists its own with their defaults.

    Types are checked here, values by what they are for: `RunConfig` and the samplers.
    """

    one_label: ClassVar[bool | None] = None  # an image, None where both kinds fit
    profile: str = "quick"

    def __post_init__(self) -> None:
        """Refuse values of another type than annotated."""
        for each in fields(self):
            value = getattr(self, each.name)
            if get_origin(each.type) is list:
                value = _listed(each.name, value, each.type, each.metadata["least"])
            else:
                value = _typed(each.name, value, each.type)
            object.__setattr__(self, each.name, value)
        one_of("profile", self.profile, PROFILES)
        one_of("device", getattr(self, "device", "cpu"), DEVICES)
        self._check_datasets()

    def _check_datasets(self) -> None:
        fit = [
            name
            for name, row in DATASETS.items()
            if self.one_label in (None, row.recipe.loss == "cross_entropy")
        ]
        for name in getattr(self, "dataset", ()):
            if one_of("dataset", name, DATASETS) not in fit:
                kind = "one label" if self.one_label else "several labels"
                raise ValueError(
                    f"{self.topic()} is about {kind} an image, got the data set "
                    f"{name!r}; choose from {', '.join(fit)}"
                )

    @classmethod
    def topic(cls) -> str:
        """Return the name of the notebook and of the topic's module."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def read(cls, namespace: dict) -> Self:
        """Read the parameters among a notebook's ``globals()``.

        Where a value is the notebook's own, the profile's takes its place.
        """
        defaults = asdict(cls())
        if absent := [name for name in defaults if name not in namespace]:
            raise ValueError(
                f"expected the cell of the parameters of {cls.topic()} to have been "
                f"run, got no {absent[0]!r}; run it first"
            )
        values = asdict(cls(**{name: namespace[name] for name in defaults}))
        changed = {k: value for k, value in values.items() if value != defaults[k]}
        return cls(**asdict(cls.of(values["profile"])) | changed)

    @classmethod
    def of(cls, profile: str) -> Self:
        """Return the notebook's parameters under a profile."""
        file = params_file(profile, cls.topic())
        if not file.is_file():
            raise ValueError(
                f"profile {profile!r} has no parameters for {cls.topic()}: expected "
                f"params/{profile}/{file.name}; choose another profile"
            )
        values = parameters(profile, cls.topic()) | {"profile": profile}
        names = [each.name for each in fields(cls)]
        if unknown := [name for name in values if name not in names]:
            raise ValueError(
                f"unknown parameter {', '.join(map(repr, unknown))}; "
                f"parameters of {cls.topic()}: {', '.join(names)}"
            )
        return cls(**values)

    @property
    def changed(self) -> str:
        """Name the parameters that are not the profile's: "rho=0.1,seeds=0-1"."""
        usual = asdict(self.of(self.profile))
        other = {k: value for k, value in asdict(self).items() if value != usual[k]}
        if other and self.profile != "quick":
            other = {"profile": self.profile} | other
        return ",".join(f"{name}={_short(value)}" for name, value in other.items())

    @property
    def folder(self) -> Path:
        """``figures/PROFILE``, or ``figures/custom/rho=0.1`` for other parameters."""
        if not self.changed:
            return figures_dir(self.profile)
        name = re.sub(r"[^\w.,=+-]", "_", self.changed)
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
        import matplotlib.pyplot as plt  # slow to load; parameters do not need it
        from IPython.display import Image, display

        if self.changed:
            figure.suptitle(f"{figure.get_suptitle()}\n{self.changed}".strip())
        figure.savefig(f"{file}.png", metadata={"Software": None})
        plt.close(figure)
        width = round(figure.get_figwidth() * figure.dpi)
        display(Image(f"{file}.png", width=width, alt=in_words(figure)))

    def _repr_markdown_(self) -> str:
        rows = [f"| `{name}` | {value} |" for name, value in asdict(self).items()]
        where = self.folder.relative_to(figures_dir("custom").parent)
        return "\n".join(
            ["| parameter | value |", "|---|---|", *rows, "", f"Figures: `{where}/`."]
        )


def parameters(profile: str, notebook: str) -> dict:
    """Return what a profile changes of a notebook's parameters, from its YAML file."""
    file = params_file(profile, notebook)
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{file} cannot be read as YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected names and values in {file}, got {values!r}")
    return values


def _typed(name: str, value: object, kind: type) -> object:
    """Return a value of an annotated type; "1e-3" is a number, as YAML has it."""
    kinds = get_args(kind) or (kind,)  # of float | None both
    if isinstance(value, str) and str not in kinds:
        with suppress(ValueError, SyntaxError):  # other text is refused below
            value = ast.literal_eval(value)
    if value is None and type(None) in kinds:
        return None
    return CHECKS[kinds[0]](name, value)


def _listed(name: str, value: object, kind: type, least: int) -> list:
    """Return a list; it may come as one value or, from a command line, as "0,1,2"."""
    if isinstance(value, str):
        items = [item.strip(" '\"") for item in value.strip("[]").split(",")]
        value = [item for item in items if item]
    if not isinstance(value, list | tuple):
        value = [] if value is None else [value]
    if len(value) < least:
        raise ValueError(f"{name} must have at least {least} value, got none")
    return [_typed(name, item, get_args(kind)[0]) for item in value]


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r}")
    return value


CHECKS = {int: partial(whole, least=0), float: finite, str: _text}


def _short(value: object) -> str:
    """Write a value for a folder's name: [0, 1, 2] as "0-2", other lists with "+"."""
    if not isinstance(value, list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if len(value) > 1 and value == list(range(len(value))):
        return f"0-{value[-1]}"
    return "+".join(map(_short, value)) or "none"


def in_words(figure: Figure) -> str:
    """Say what a figure shows, for readers who cannot see it: panels, axes, legend."""
    texts = [figure.get_suptitle()]
    marks = []
    for ax in figure.axes:
        if not ax.axison:
            continue
        axes = " over ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        title = ax.get_title() or ax.get_title("left")
        texts.append(": ".join(filter(None, (title, axes))))
        marks += ax.get_legend_handles_labels()[1]
    text = "; ".join(dict.fromkeys(filter(None, texts)))
    text += f". Marks: {', '.join(dict.fromkeys(marks))}" if marks else ""
    return " ".join(re.sub(r"[$\\{}]", "", text).split())
