"""Check a notebook's parameters before any work starts, and save its tables and pictures."""

import ast
import contextlib
import io
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import yaml

from prslib.checks import finite, one_of, power, whole
from prslib.datasets import DATASETS
from prslib.datasets.base import schedule_of
from prslib.metrics import GROUP_METRICS
from prslib.models import MODELS
from prslib.paths import figures_dir, params_file, project_root
from prslib.training.config import COUNT, SIZE, RunConfig
from prslib.training.methods import METHODS

PROFILES = ("smoke", "quick", "seeds", "laptop", "paper")


def _name(known: Iterable[str]) -> Callable:
    return partial(one_of, known=known)


def _text(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r}")
    return value


def _positive(name, value, below=math.inf):
    value = finite(name, value)
    if not 0 < value < below:
        limit = f" and below {below}" if below < math.inf else ""
        raise ValueError(f"{name} must be above 0{limit}, got {value:g}")
    return value


def _order(name, value):
    """Read "drawn" as None and anything else as `schedule_of` does."""
    return None if _text(name, value) == "drawn" else schedule_of(value)


def _optional(check: Callable) -> Callable:
    return lambda name, value: None if value is None else check(name, value)


def _read(text: str) -> str | float | None:
    """Read "None" and numbers such as "1e-3", which YAML takes for text."""
    if text.strip() == "None":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _several(check: Callable, least: int = 1) -> Callable:
    """Accept a list, one value, or (from a command line) text with commas: "0,1,2"."""

    def check_all(name, value):
        if isinstance(value, str):
            try:
                value = [yaml.safe_load(part) for part in value.strip("[]").split(",") if part]
            except yaml.YAMLError as error:
                said = f"{name} must be values with commas between, such as 0,1,2, got {value!r}"
                raise ValueError(said) from error
        values = list(value) if isinstance(value, list | tuple) else [value]
        values = [_read(item) if isinstance(item, str) else item for item in values]
        if len(values) < least:
            wanted = "one value" if least == 1 else f"{least} values"
            raise ValueError(f"{name} must hold at least {wanted}, got {len(values) or 'none'}")
        return [check(name, item) for item in values]

    return check_all


def _one_or_several(check: Callable) -> Callable:
    """Accept one value or a list, and keep which of the two it was."""
    several = _several(check)

    def check_either(name, value):
        listed = isinstance(value, list) or (isinstance(value, str) and "," in value)
        return several(name, value) if listed else check(name, value)

    return check_either


# every parameter that a notebook may have, and the check of its value
PARAMETERS: dict[str, Callable] = {
    "profile": _name(PROFILES),
    "dataset": _several(_name(DATASETS)),
    "thinned": _several(_name(DATASETS), least=0),
    "trained": _several(_name(DATASETS)),
    "method": _several(_name(METHODS)),
    "metrics": _several(_name((*GROUP_METRICS, "AUC"))),
    "costly": _several(_name((*METHODS, *DATASETS)), least=0),
    "costly_seeds": _several(COUNT, least=0),
    "model": _several(_name(MODELS), least=2),  # networks are compared
    "costly_models": _several(_name(MODELS), least=0),
    "frozen_stages": _several(COUNT),
    "learning_rates": _several(_optional(_positive)),
    "weights": _optional(_text),
    "begun_with": _several(_text),
    "epochs": _several(SIZE),
    "rho": _one_or_several(power),
    "balanced_rho": power,
    "rhos": _several(power),
    "memory_size": _optional(SIZE),
    "samples": COUNT,
    "per_class": SIZE,
    "neighbours": SIZE,
    "shown": SIZE,
    "others": COUNT,
    "points": _several(SIZE),
    "single_label_only": _several(_name(METHODS), least=0),
    "seed": COUNT,
    "seeds": _several(COUNT),
    "varied_seeds": _several(COUNT),
    "schedules": SIZE,
    "sized": _several(_name(METHODS)),
    "shares": _several(_positive),
    "orders": _several(_order),
    "spread": partial(whole, least=2),
    "search": _optional(_several(SIZE)),
    "level": partial(_positive, below=1),
    "missing": _name(("train", "leave")),
    "device": _name(("cpu", "cuda")),
}


@dataclass(frozen=True)
class Settings:
    """A notebook's checked parameters, read as attributes, and where its figures are saved."""

    notebook: str
    values: dict  # parameter name to checked value

    def __getattr__(self, name: str):
        """Return a parameter's value."""
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"no parameter {name!r} in {self.notebook}") from None

    @property
    def folder(self) -> Path:
        """``figures/<profile>`` where all parameters are the profile's, else ``figures/custom``."""
        same = self.values == _of_profile(self.profile, self.notebook)
        return figures_dir(self.profile if same else "custom")

    def save(self, figure, frame: pd.DataFrame, name: str) -> None:
        """Show a figure, if any, close it, and write it as PNG and all of its numbers as CSV."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.notebook}_{name}"
        frame = frame.drop(columns="draws", errors="ignore")  # arrays
        frame.to_csv(f"{file}.csv", index=False, float_format="%.6g")
        if figure is None:
            return
        import matplotlib.pyplot as plt  # slow to load, and reading parameters needs neither
        from IPython.display import Image, display

        figure.savefig(f"{file}.png", metadata={"Software": None})
        plt.close(figure)
        width = round(figure.get_figwidth() * figure.dpi)
        display(Image(f"{file}.png", width=width, alt=in_words(figure)))

    def _repr_markdown_(self) -> str:
        rows = [f"| `{name}` | {value} |" for name, value in self.values.items()]
        where = f"\n\nFigures go to `{'/'.join(self.folder.parts[-2:])}/`."
        return "\n".join(["| parameter | value |", "|---|---|", *rows]) + where


def in_words(figure) -> str:
    """Say what a figure shows, for readers who cannot see it: its panels, axes and legend."""
    said, marks = [figure.get_suptitle()], []
    for ax in (ax for ax in figure.axes if ax.axison):
        axes = " over ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        said.append(": ".join(filter(None, (ax.get_title() or ax.get_title("left"), axes))))
        marks += ax.get_legend_handles_labels()[1]
    text = "; ".join(dict.fromkeys(filter(None, said)))
    text += f". Marks: {', '.join(dict.fromkeys(marks))}" if marks else ""
    return " ".join(re.sub(r"[$\\{}]", "", text).split())


def settings(notebook: str, namespace: dict, single_label: bool | None = None) -> Settings:
    """Check a notebook's parameters, which its ``globals()`` hold, before any work starts."""
    sources = namespace.get("In", ())
    cells = [_parsed(source) for source in sources]
    annotated = [c for c in cells if c and all(isinstance(s, ast.AnnAssign) for s in c)]
    if not annotated:
        raise ValueError(
            f"expected a cell of the parameters of {notebook} to have been run, each in a line "
            "`name: type = value` and nothing else in the cell; got none"
        )
    # papermill puts what it was given into a cell of its own, which begins like this
    injected = [
        statement.targets[0].id
        for source, cell in zip(sources, cells, strict=True)
        if source.lstrip().startswith("# Parameters")
        for statement in cell
        if isinstance(statement, ast.Assign)
    ]
    allowed = _names(annotated[-1])
    _check_known(notebook, injected, allowed)
    values = {name: PARAMETERS[name](name, namespace[name]) for name in allowed}
    values = _with_profile(notebook, values, injected)
    if single_label is not None:
        _check_kind(notebook, values["dataset"], single_label)
    return Settings(notebook, values)


def _with_profile(notebook: str, values: dict, injected: Iterable[str]) -> dict:
    """Take the profile's values where those of the notebook, the quick profile's, were left."""
    quick, own = (_of_profile(name, notebook) for name in ("quick", values.get("profile", "quick")))
    if quick and not own:
        raise ValueError(
            f"profile {values['profile']!r} has no parameters for {notebook}: expected params/"
            f"{values['profile']}/{notebook}.yaml; choose another profile"
        )
    left = [name for name in values if name in own and name not in injected]
    return values | {name: own[name] for name in left if values[name] == quick.get(name)}


def _of_profile(profile: str, notebook: str) -> dict:
    """Return a notebook's checked parameters under a profile; empty where there are none."""
    if not params_file(profile, notebook).is_file():
        return {}
    return {name: PARAMETERS[name](name, v) for name, v in given(profile, notebook).items()}


def _parsed(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # a cell with a magic command
        return []


def _names(cell: list[ast.AnnAssign]) -> list[str]:
    return [statement.target.id for statement in cell]


def _check_known(notebook: str, names: Iterable[str], allowed: list[str]) -> None:
    if unknown := [name for name in names if name not in allowed]:
        raise ValueError(
            f"unknown parameter {', '.join(map(repr, unknown))}; "
            f"parameters of {notebook}: {', '.join(allowed)}"
        )


def _check_kind(notebook: str, names: list[str], single_label: bool) -> None:
    kinds = {name: one.recipe.loss == "cross_entropy" for name, one in DATASETS.items()}
    fit = [name for name, kind in kinds.items() if kind == single_label]
    if wrong := [name for name in names if name not in fit]:
        raise ValueError(
            f"{notebook} is about {'one label' if single_label else 'several labels'} an image, "
            f"got the data set {wrong[0]!r}; choose from {', '.join(fit)}"
        )


def wanted(notebook: str, profile: str) -> list[RunConfig]:
    """Return the runs ``wanted`` that a notebook's parameters and its next cell ask for."""
    file = project_root() / "notebooks" / f"{notebook}.ipynb"
    cells = [c for c in json.loads(file.read_text())["cells"] if c["cell_type"] == "code"]
    first = next(i for i, c in enumerate(cells) if "parameters" in c["metadata"].get("tags", ()))
    sources = ["".join(cell["source"]) for cell in cells[first : first + 2]]
    namespace, values = {"In": sources[:1]}, given(profile, notebook)
    exec(sources[0], namespace)
    _check_known(notebook, values, _names(_parsed(sources[0])))
    namespace |= values
    with contextlib.redirect_stdout(io.StringIO()):
        exec(sources[1], namespace)
    return namespace["wanted"]


def given(profile: str, notebook: str) -> dict:
    """Return a notebook's parameters under a profile, unchecked, from their YAML file."""
    file = params_file(profile, notebook)
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{file} cannot be read as YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected parameters and their values in {file}, got {values!r}")
    return values
