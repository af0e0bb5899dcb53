"""What every notebook of the report begins and ends with: its parameters and its pictures."""

import ast
import contextlib
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from prslib.config import RunConfig
from prslib.datasets import DATASETS
from prslib.parameters import PARAMETERS
from prslib.paths import figures_dir, params_file, project_root


@dataclass(frozen=True)
class Settings:
    """A notebook's checked parameters, read as attributes, and the folder of its figures.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    values : dict
        Parameter name to checked value.
    """

    notebook: str
    values: dict

    def __getattr__(self, name: str):
        """Return a parameter's value."""
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"no parameter {name!r} in {self.notebook}") from None

    @property
    def folder(self) -> Path:
        """``figures/<profile>`` where all parameters are the profile's, else ``figures/custom``."""
        file = params_file(self.profile, self.notebook)
        named = yaml.safe_load(file.read_text()) if file.is_file() else None
        ours = named is not None and {k: PARAMETERS[k](k, v) for k, v in named.items()}
        return figures_dir(self.profile if ours == self.values else "custom")

    def save(self, figure, frame: pd.DataFrame, name: str) -> None:
        """Write a picture and the numbers in it, ``<folder>/<name>.png`` and ``.csv``, and show it.

        What is shown is the file: it is drawn once, and the figure is closed.

        Parameters
        ----------
        figure : matplotlib.figure.Figure or None
            The picture; None for a table.
        frame : DataFrame
            Every number that the picture shows.
        name : str
            File name without ending.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        frame.to_csv(self.folder / f"{name}.csv", index=False, float_format="%.6g")
        if figure is not None:
            self._show(figure, self.folder / f"{name}.png")

    def _show(self, figure, file: Path) -> None:
        import matplotlib.pyplot as plt  # who has a figure has loaded these, who asks for
        from IPython.display import Image, display  # parameters alone need not wait for them

        figure.savefig(file, metadata={"Software": None})
        plt.close(figure)
        width, alt = round(figure.get_figwidth() * figure.dpi), f"{file.stem}, as in its CSV file"
        display(Image(file, width=width, alt=alt))

    def _repr_markdown_(self) -> str:
        rows = [f"| `{name}` | {value} |" for name, value in self.values.items()]
        where = f"\n\nFigures go to `{'/'.join(self.folder.parts[-2:])}/`."
        return "\n".join(["| parameter | value |", "|---|---|", *rows]) + where


def settings(notebook: str, namespace: dict, single_label: bool | None = None) -> Settings:
    """Check a notebook's parameters before any work starts.

    Parameters
    ----------
    notebook : str
        The notebook's name, for its figures.
    namespace : dict
        The notebook's ``globals()``.
    single_label : bool, optional
        Whether images have one label, for a notebook that is about the one kind of data alone.

    Returns
    -------
    Settings
        The checked values.

    Raises
    ------
    ValueError
        If a parameter is unknown (the message names the allowed ones) or out of range, a data set
        is of the other kind, or there is no cell of parameters.
    TypeError
        If a parameter has the wrong type.

    Notes
    -----
    The notebook's own parameters are the annotated names of its parameters cell; what papermill
    was given comes in a cell of its own that begins with ``# Parameters``.
    """
    cells = [_parsed(source) for source in namespace.get("In", ())]
    own = next((cell for cell in reversed(cells) if _annotates(cell)), [])
    injected = [
        cell
        for source, cell in zip(namespace.get("In", ()), cells, strict=True)
        if source.lstrip().startswith("# Parameters")
    ]
    allowed = [statement.target.id for statement in own]
    if not own:
        raise ValueError(
            f"expected a cell of the parameters of {notebook} to have been run, each in a line "
            "`name: type = value` and nothing else in the cell; got none"
        )
    _check_known(notebook, [name for cell in injected for name in _assigned(cell)], allowed)
    values = {name: PARAMETERS[name](name, namespace[name]) for name in allowed}
    if single_label is not None:
        _check_kind(notebook, values["dataset"], single_label)
    return Settings(notebook, values)


def _check_known(notebook: str, names: Iterable[str], allowed: list[str]) -> None:
    if unknown := [name for name in names if name not in allowed]:
        raise ValueError(
            f"unknown parameter {', '.join(map(repr, unknown))}; "
            f"parameters of {notebook}: {', '.join(allowed)}"
        )


def _check_kind(notebook: str, names: list[str], single_label: bool) -> None:
    kinds = {name: one.recipe.loss == "cross_entropy" for name, one in DATASETS.items()}
    for name in names:
        if kinds[name] != single_label:
            known = ", ".join(other for other, kind in kinds.items() if kind == single_label)
            raise ValueError(
                f"{notebook} is about {'one label' if single_label else 'several labels'} an "
                f"image, got the data set {name!r}; choose from {known}"
            )


def wanted(notebook: str, profile: str) -> list[RunConfig]:
    """Return the runs that a notebook asks for under a profile, without executing the rest of it.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    profile : str
        "smoke", "quick", "seeds" or "paper".

    Returns
    -------
    list of RunConfig
        What the notebook calls ``wanted`` after its second cell, the one after its parameters.

    Raises
    ------
    FileNotFoundError
        If the notebook, its parameters or a data set that it names are not there.
    ValueError, TypeError
        If a parameter is unknown or its value is refused, as by `settings`.

    Examples
    --------
    >>> {config.method for config in wanted("rho_sweep", "smoke")}
    {'PRS'}
    """
    file = project_root() / "notebooks" / f"{notebook}.ipynb"
    cells = [c for c in json.loads(file.read_text())["cells"] if c["cell_type"] == "code"]
    first = next(i for i, c in enumerate(cells) if "parameters" in c["metadata"].get("tags", ()))
    sources = ["".join(cell["source"]) for cell in cells[first : first + 2]]
    namespace, values = {"In": sources[:1]}, given(profile, notebook)
    exec(sources[0], namespace)
    allowed = [statement.target.id for statement in _parsed(sources[0])]
    _check_known(notebook, values, allowed)
    namespace |= values
    with contextlib.redirect_stdout(io.StringIO()):
        exec(sources[1], namespace)
    return namespace["wanted"]


def given(profile: str, notebook: str) -> dict:
    """Return a notebook's parameters under a profile, unchecked.

    Parameters
    ----------
    profile : str
        "smoke", "quick", "seeds" or "paper".
    notebook : str
        The notebook's name.

    Returns
    -------
    dict
        What its YAML file holds.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no YAML, or holds something else than names and values.

    Examples
    --------
    >>> given("smoke", "rho_sweep")["profile"]
    'smoke'
    """
    file = params_file(profile, notebook)
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{file} cannot be read as YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected parameters and their values in {file}, got {values!r}")
    return values


def _parsed(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # a cell with a magic command
        return []


def _annotates(cell: list[ast.stmt]) -> bool:
    return bool(cell) and all(isinstance(statement, ast.AnnAssign) for statement in cell)


def _assigned(cell: list[ast.stmt]) -> list[str]:
    return [s.targets[0].id for s in cell if isinstance(s, ast.Assign)]
