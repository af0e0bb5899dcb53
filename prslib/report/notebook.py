"""Parameters of a notebook, checked before any work starts, and what it saves."""

import hashlib
import re
from ast import literal_eval
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pandas as pd
import yaml
from matplotlib.figure import Figure

from prslib.checks import expected, finite, one_of, whole
from prslib.datasets import DATASETS
from prslib.paths import figures_dir, known_profiles, params_file

LONGEST = 100  # letters of a folder's name


class Parameters(SimpleNamespace):
    """Parameters of a topic's notebook: those of a profile, but for some changes.

    The profile quick lists all of them with their defaults, the others what differs.
    Types are checked here, values by what they are for: `RunConfig`, the samplers and
    `run_all`.
    """

    def __init__(self, topic: str, profile: str = "quick", **changes: object):
        one_of("profile", profile, known_profiles())
        defaults = parameters("quick", topic)
        usual = typed(defaults | parameters(profile, topic), defaults)
        values = usual | typed(changes, defaults)
        super().__init__(**values)
        self.topic = topic
        self.values = values
        self.changes = {n: value for n, value in values.items() if value != usual[n]}

    @classmethod
    def read(cls, topic: str, namespace: dict) -> Self:
        """Read a topic's parameters among a notebook's ``globals()``.

        Where a value is the notebook's own, the profile's takes its place.
        """
        values = {name: namespace[name] for name in cls(topic).values}
        profile = values.pop("profile")
        return cls(topic, profile, **cls(topic, **values).changes)

    @property
    def changed(self) -> str:
        """Name the parameters that are not the profile's: "rho=0.1, seeds=[0, 1]"."""
        other = self.changes
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
        file = self.folder / f"{self.topic}_{name}"
        frame = frame.drop(columns="draws", errors="ignore")  # arrays
        frame.to_csv(f"{file}.csv", index=False, float_format="%.6g")
        if self.changed:  # all parameters beside it, as papermill reads them
            text = yaml.safe_dump(self.values, sort_keys=False)
            (self.folder / f"{self.topic}.yaml").write_text(text, encoding="utf-8")
        if figure is None:
            return
        import matplotlib.pyplot as plt  # slow to load; parameters do not need it
        from IPython.display import Image, display

        if self.changed:
            figure.suptitle(f"{figure.get_suptitle()}\n{self.changed}".strip())
        figure.savefig(f"{file}.png", metadata={"Software": None})
        plt.close(figure)
        about = {"alt": in_words(figure), "file": f"{file.name}.png"}
        about["width"] = round(figure.get_figwidth() * figure.dpi)
        display(Image(f"{file}.png", metadata=about))

    def _repr_markdown_(self) -> str:
        rows = [f"| `{name}` | {value} |" for name, value in self.values.items()]
        where = self.folder.relative_to(figures_dir("custom").parent)
        head = ["| parameter | value |", "|---|---|"]
        return "\n".join([*head, *rows, "", f"Figures: `{where}/`."])


def parameters(profile: str, notebook: str) -> dict:
    """Return what a profile changes of a notebook's parameters, from its YAML file."""
    with open(params_file(profile, notebook), encoding="utf-8") as file:
        return yaml.safe_load(file)


def typed(values: dict, defaults: dict) -> dict:
    """Return parameters with the types of their defaults; refuse unknown names."""
    for name in values:
        one_of("parameter", name, defaults)
    return {name: _typed(name, values[name], defaults[name]) for name in values}


def _typed(name: str, value: object, default: object) -> object:
    """Return a value of a default's type; it may come as text, "1e-3" or "0,1,2"."""
    if isinstance(default, list):
        if isinstance(value, str):
            value = yaml.safe_load(f"[{value.strip(' []')}]")
        if value is None:
            return []
        items = value if isinstance(value, list | tuple) else [value]
        example = default[-1] if default else None
        return [_typed(name, item, example) for item in items]
    if isinstance(default, str):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be text, got {value!r}")
        return value
    if isinstance(value, str):
        with suppress(ValueError, SyntaxError):  # other text is refused below
            value = literal_eval(value)
    if value is None or default is None:
        return value
    whole_number = isinstance(default, int)
    return whole(name, value, least=0) if whole_number else finite(name, value)


def check_labels(datasets: Sequence[str], one: bool) -> None:
    """Refuse data sets that have several labels an image, or that have `one`."""
    for name in datasets:
        loss = DATASETS[one_of("dataset", name, DATASETS)].recipe.loss
        if one != (loss == "cross_entropy"):
            kind = "one label" if one else "several labels"
            raise ValueError(expected(f"data with {kind} an image", repr(name)))


def in_words(figure: Figure) -> str:
    """Say what a figure shows, for readers who cannot see it: panels, axes, legend."""
    texts, marks = [figure.get_suptitle()], []
    for ax in figure.axes:
        if ax.axison:
            axes = " over ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
            title = ax.get_title() or ax.get_title("left")
            texts.append(": ".join(filter(None, (title, axes))))
            marks += ax.get_legend_handles_labels()[1]
    text = "; ".join(dict.fromkeys(filter(None, texts)))
    text += f". Marks: {', '.join(dict.fromkeys(marks))}" if marks else ""
    return " ".join(re.sub(r"[$\\{}]", "", text).split())
