"""Read and check the parameters of a notebook, find its runs, save its figures.

A notebook's cell `parameters` is the one declaration of its parameters. A profile is a
YAML file with what it changes. `prslib train`, `make figures` and the ledger ask here.
"""

import ast
import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
import yaml
from matplotlib.figure import Figure

from prslib.checks import check_int, check_text, device_name, expected, finite, one_of
from prslib.datasets import DATASETS
from prslib.losses import LOSSES
from prslib.models import MODELS
from prslib.paths import (
    figures_dir,
    known_profiles,
    notebook_file,
    params_file,
)
from prslib.report.asked import Asked, drop_repeated
from prslib.report.grids import configs_of
from prslib.report.tables import labels_of
from prslib.train import METHODS, Run

if TYPE_CHECKING:
    from IPython.display import Markdown

LONGEST = 100  # letters of a folder's name
PAPERMILL = "# Parameters"  # begins the cell that papermill adds
NOTHING = (None, "None")
KINDS = {"int": int, "float": float, "str": str}  # of parameters, and of lists of them
# lists that may be empty
OPTIONAL = ("own_threshold", "costly_models", "balanced")
OPTIONAL += ("parts", "others", "stand_ins", "search")
# lists in which no value comes again
ONCE = ("dataset", "method", "seeds", "varied_seeds", "rhos", "metrics")
# lists of names, what they name, and the tables that have them
OF_SETS = ("dataset", "parts", "others", "stand_ins", "trained")
NAMES: dict[str, tuple[str, Mapping]] = dict.fromkeys(OF_SETS, ("dataset", DATASETS))
NAMES |= dict.fromkeys(("method", "sized", "own_threshold"), ("method", METHODS))
NAMES |= dict.fromkeys(("model", "costly_models"), ("model", MODELS))
NAMES |= dict.fromkeys(("loss", "balanced"), ("loss", LOSSES))
# names of parameters before, and what to write now
BEFORE = dict.fromkeys(("costly", "costly_seeds"), "few_seeds, as in {'GSS': 3}")
OPEN, BALANCED = "open", "balanced"  # test sets


class Settings(SimpleNamespace):
    """The values of a notebook's parameters, one attribute each."""

    notebook: str
    profile: str

    @classmethod
    def read(cls, notebook: str, namespace: dict) -> Self:
        """Read the parameters among a notebook's ``globals()``, and check them."""
        for source in namespace.get("In", []):
            if source.startswith(PAPERMILL):
                check_names(notebook, assigned(source))
        names = list({"profile": None} | declared(notebook))
        if missing := [name for name in names if name not in namespace]:
            what = f"the parameters {', '.join(missing)} of {notebook}"
            raise ValueError(expected(what, "none", "run the cell that sets them"))
        values = {name: namespace[name] for name in names}
        return cls(notebook=notebook, **checked(notebook, values))

    @classmethod
    def of(cls, profile: str, notebook: str, **values: Any) -> Self:
        """Return a notebook's parameters under a profile, and others where given."""
        usual = {name: row.default for name, row in declared(notebook).items()}
        values = usual | profile_values(profile, notebook) | values
        return cls(notebook=notebook, **checked(notebook, values))

    def __getattr__(self, name: str) -> Any:
        """Say that the notebook's cell no longer declares a parameter."""
        what = f"the parameter {name} in the cell of {vars(self).get('notebook')}"
        advice = f"declare it again, as in `{name}: int = 3`"
        raise AttributeError(expected(what, "none", advice))

    @property
    def values(self) -> dict:
        """All parameters by name."""
        return {name: getattr(self, name) for name in declared(self.notebook)}

    @property
    def changed(self) -> str:
        """Name the parameters that are not the profile's: "rho=0.1, seeds=[0, 1]"."""
        usual = self.of(self.profile, self.notebook).values
        other = {k: value for k, value in self.values.items() if value != usual[k]}
        if other and self.profile != "quick":
            other = {"profile": self.profile} | other
        return ", ".join(f"{name}={value}" for name, value in other.items())

    @property
    def folder(self) -> Path:
        """``figures/PROFILE``, or ``figures/custom/rho=0.1`` for other parameters."""
        if not self.changed:
            return figures_dir(self.profile)
        name = re.sub(r"[^\w.,:=+-]", "", self.changed).replace(":", "_")
        if len(name) > LONGEST:
            name = name[:LONGEST] + hashlib.sha256(name.encode()).hexdigest()[:8]
        return figures_dir("custom") / name

    def save(
        self, figure: Figure | None, frame: pd.DataFrame, name: str, narrow: int = 0
    ) -> None:
        """Show and close a figure, if any; write it as PNG and its numbers as CSV.

        With `narrow` a second PNG, for phones, has the panels in as many columns. The
        profile quick has none, as no page is made of it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.notebook}_{name}"
        frame = frame.drop(columns="draws", errors="ignore")  # arrays
        frame.to_csv(f"{file}.csv", index=False, float_format="%.6g")
        if self.changed:  # all parameters beside it, as papermill reads them
            text = yaml.safe_dump(self.values, sort_keys=False)
            beside = self.folder / f"{self.notebook}.yaml"
            beside.write_text(text, encoding="utf-8")
        if figure is None:
            return
        # slow to load; parameters do not need it
        import matplotlib.pyplot as plt
        from IPython.display import Image, display

        from prslib.report.style import stack_panels

        if self.changed:
            figure.suptitle(f"{figure.get_suptitle()}\n{self.changed}".strip())
        figure.savefig(f"{file}.png", metadata={"Software": None})
        about = {"alt": in_words(figure), "file": f"{file.name}.png"}
        about["width"] = round(figure.get_figwidth() * figure.dpi)
        if narrow and self.profile != "quick":
            stack_panels(figure, narrow)
            figure.savefig(f"{file}_narrow.png", metadata={"Software": None})
            about["narrow"] = f"{file.name}_narrow.png"
        plt.close(figure)
        display(Image(f"{file}.png", metadata=about))

    def _repr_markdown_(self) -> str:
        rows = [f"| `{name}` | {value} |" for name, value in self.values.items()]
        where = self.folder.relative_to(figures_dir("custom").parent)
        lines = ["<details><summary>Parameters</summary>", ""]
        lines += ["| parameter | value |", "|---|---|", *rows, ""]
        return "\n".join([*lines, f"Figures: `{where}/`.", "", "</details>"])


class Declaration(SimpleNamespace):
    """A line of a `parameters` cell: the type, the default and what it is for."""

    kind: type  # of the value, or of each in a list or dict
    is_list: bool
    is_dict: bool  # from names to values
    default: Any
    comment: str


@lru_cache
def cells_with(tag: str, notebook: str) -> list[str]:
    """Return the sources of a notebook's cells with a tag."""
    # nbformat and papermill take seconds to load, in every notebook's kernel
    content = json.loads(notebook_file(notebook).read_text(encoding="utf-8"))
    return [
        "".join(cell["source"])
        for cell in content["cells"]
        if tag in cell["metadata"].get("tags", [])
    ]


@lru_cache
def declared(notebook: str) -> dict[str, Declaration]:
    """Return the parameters that a notebook declares, by name, as papermill reads them."""
    source = "\n".join(cells_with("parameters", notebook))
    lines = source.splitlines()
    rows = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.AnnAssign) or not node.value:
            continue
        outer, _, inner = ast.unparse(node.annotation).partition("[")
        text = ast.get_source_segment(source, node) or ""
        try:
            kind = KINDS[inner.removesuffix("]").removeprefix("str, ") or outer]
            default = ast.literal_eval(node.value)
            is_list = isinstance(default, list)
            is_dict = isinstance(default, dict)
            if (is_list, is_dict) != (outer == "list", outer == "dict"):
                raise TypeError
        except (KeyError, TypeError, ValueError):
            what = (
                f"a line such as `seeds: list[int] = [0, 1]` in the cell of {notebook}"
            )
            raise ValueError(expected(what, f"`{text}`")) from None
        after = lines[node.lineno - 1].removeprefix(text)
        comment = after.partition("#")[2].strip()
        name = ast.unparse(node.target)
        rows[name] = Declaration(
            kind=kind,
            is_list=is_list,
            is_dict=is_dict,
            default=default,
            comment=comment,
        )
    return rows


def profile_values(profile: str, notebook: str) -> dict:
    """Return what a profile changes of a notebook's parameters, from its YAML file."""
    one_of("profile", profile, known_profiles())
    file = params_file(profile, notebook)
    if not file.is_file():
        return {"profile": profile}
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        text = expected(f"YAML in {file}", str(error).replace("\n", " "))
        raise ValueError(text) from error
    if not isinstance(values, dict):
        what = f"lines `name: value` in {file}"
        raise ValueError(expected(what, repr(values)))
    check_names(notebook, values)
    return {"profile": profile} | values


def assigned(source: str) -> list[str]:
    """Return the names that a cell assigns."""
    nodes = ast.walk(ast.parse(source))
    return [
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def check_names(notebook: str, names: Iterable[str]) -> None:
    """Raise ValueError for a name that a notebook does not declare."""
    known = list(declared(notebook))
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            if name in BEFORE:
                hint = f"it is now {BEFORE[name]}; "
            raise ValueError(
                f"unknown parameter {name!r} of {notebook}; {hint}"
                f"its parameters: {', '.join(known)}"
            )


def checked(notebook: str, values: dict) -> dict:
    """Return values in the declared types; text, such as "0,1,2", is read."""
    rows = declared(notebook)
    check_names(notebook, values)
    values = {name: typed(name, value, rows[name]) for name, value in values.items()}
    one_of("profile", values["profile"], known_profiles())
    for parameter in [name for name in NAMES if name in rows and rows[name].is_list]:
        kind, table = NAMES[parameter]
        for name in values[parameter]:
            one_of(kind, name, table)
    for name in values.get("few_seeds", {}):
        if name not in [*METHODS, *DATASETS]:
            what = (
                f"methods ({', '.join(METHODS)}) or data sets ({', '.join(DATASETS)})"
            )
            raise ValueError(f"few_seeds: {expected(what, repr(name))}")
    device_name(values.get("device", "cpu"))
    return values


def typed(name: str, value: Any, row: Declaration) -> object:
    """Return a value in the declared type; it may come as text, "1e-3" or "0,1,2".

    A single value is a list of one where a list is declared.
    """
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if row.is_dict:
        return by_name(name, value, row.kind)
    if not row.is_list:
        return single(name, value, row.kind, row.default is None)
    if isinstance(value, str):
        inner = re.sub(r"^\[(.*)\]$", r"\1", value.strip())
        texts = inner.split(",") if inner.strip() else []
        value = [text.strip(" '\"") for text in texts]
    items = list(value) if isinstance(value, list | tuple | range) else [value]
    if items in ([], [None]):
        if name not in OPTIONAL:
            raise ValueError(expected(f"at least one of {name}", "none"))
        return []
    optional = None in row.default  # a value is then the data set's own
    values = [single(name, item, row.kind, optional) for item in items]
    if name in ONCE and len({*values}) < len(values):
        raise ValueError(f"{name}: {expected('each value once', values)}")
    return values


def by_name(name: str, value: object, kind: type) -> dict[str, object]:
    """Return a dict of the declared type; it may come as text, "GSS: 3, EWC: 2"."""
    if isinstance(value, str):
        texts = filter(str.strip, value.strip("{} ").split(","))
        pairs = [text.partition(":") for text in texts]
        value = {key.strip(" '\""): number.strip() for key, _, number in pairs}
    if not isinstance(value, Mapping):
        what = f"{name} by name, such as {{'GSS': 3}}"
        raise TypeError(expected(what, repr(value)))
    return {
        key: single(f"{name} of {key}", number, kind) for key, number in value.items()
    }


def single(name: str, value: object, kind: type, optional: bool = False) -> object:
    """Return a number or text of a type, or None for "None" where it is optional."""
    if optional and value in NOTHING:
        return None
    if kind is str:
        return check_text(name, value)
    if isinstance(value, str):
        with suppress(ValueError, SyntaxError):  # other text is refused below
            value = ast.literal_eval(value)
    return check_int(name, value, least=0) if kind is int else finite(name, value)


def check_labels(names: Sequence[str], one: bool) -> None:
    """Raise ValueError for a data set with one label a sample, or with several."""
    for name in names:
        if (DATASETS[name].recipe.loss == "cross_entropy") != one:
            kind = "one label" if one else "several labels"
            raise ValueError(expected(f"data with {kind} a sample", repr(name)))


def check_memory(methods: Sequence[str]) -> None:
    """Raise ValueError for a method without a memory."""
    with_memory = [name for name, row in METHODS.items() if row.sampler]
    for name in methods:
        one_of("method with a memory", name, with_memory)


def check_compared(methods: Sequence[str], *compared: str) -> None:
    """Raise ValueError unless the methods that a notebook compares are among its own."""
    if not {*compared} <= {*methods}:
        what = f"method with {' and '.join(compared)}"
        raise ValueError(expected(what, ", ".join(methods)))


def standard_runs(settings: Settings) -> list[Asked]:
    """Return a run of every data set, method and seed that the parameters name."""
    return configs_of(
        settings.method,
        settings.seeds,
        few_seeds=settings.few_seeds,
        dataset=settings.dataset,
        rho=settings.rho,
        memory_size=settings.memory_size,
    )


def main_runs(settings: Settings) -> list[Asked]:
    """Return the main table's runs, on the open images and on the paper's."""
    check_labels(settings.dataset, one=False)
    check_compared(settings.method, "CRS", "PRS")
    made = with_own_thresholds(standard_runs(settings), settings.own_threshold)
    return drop_repeated([*tested_on(made), *tested_on(made, BALANCED)])


def tested_on(configs: Iterable[Asked], test_set: str = OPEN) -> list[Asked]:
    """Test runs elsewhere where their data set has an open test set; others stay.

    The rule: what is decided is decided on the open images, as their chance is the
    smallest part of an interval (`figures/studies/more_seeds.csv`). The balanced test
    set, which is the paper's, serves the tables beside the paper's own.
    """
    return [
        replace(config, test_set=test_set) if has_open(config.dataset) else config
        for config in configs
    ]


def has_open(dataset: str) -> bool:
    """Tell whether a data set has an open test set."""
    return OPEN in labels_of(dataset).tests


def with_own_thresholds(
    configs: Iterable[Asked], methods: Sequence[str]
) -> list[Asked]:
    """Let the runs of some methods choose a threshold for F1, which trains them twice."""
    return [
        replace(config, own_threshold=config.method in methods) for config in configs
    ]


def runs_on(runs: Iterable[Run], test_set: str = OPEN) -> list[Run]:
    """Pick the runs that are where `tested_on` would test them."""
    return [
        run
        for run in runs
        if not has_open(run.config.dataset)
        or run.config.resolved["test_set"] == test_set
    ]


def heading(dataset: str, what: str = "") -> "Markdown":
    """Return a table's heading: the data set, and the paper's that it stands beside."""
    from IPython.display import Markdown

    stands_for = labels_of(dataset).stands_for
    beside = f"beside the paper's {stands_for}" if stands_for else "not in the paper"
    return Markdown(", ".join(filter(None, (f"**{dataset}**", what, beside))))


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
