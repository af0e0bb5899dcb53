"""Read the parameters of a notebook, and show its pictures.

A notebook's cell `parameters` declares them with their defaults. A profile is a YAML file
with what it changes. `prslib train`, `make figures` and the ledger read both here.
"""

import ast
import io
import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

import pandas as pd
import yaml

from prslib.checks import expected, one_of
from prslib.paths import (
    figures_dir,
    known_profiles,
    notebook_file,
    params_file,
    replacing,
)
from prslib.report.tables import (
    MAIN_METRICS,
    TEST_WORDS,
    in_short,
    labels_of,
    main_tables,
)

if TYPE_CHECKING:
    from IPython.display import Markdown
    from ipywidgets import ValueWidget
    from matplotlib.figure import Figure

PAPERMILL = "# Parameters"  # begins the cell that papermill adds
# columns of text that may be empty altogether
TEXTS = ("clearly", "stands_for", "weakest", "note", "schedule")
# do not belong into a page: a folder of this machine, and what the page shows
NOT_SHOWN = ("notebook", "save", "tables")


class ParameterError(ValueError):
    """A parameter that is refused; IPython shows its sentence alone."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Settings(SimpleNamespace):
    """The values of a notebook's parameters, one attribute each."""

    notebook: str
    profile: str
    save: str
    tables: dict[str, str]  # CSV by name; new parameters begin without

    @classmethod
    def read(cls, notebook: str, namespace: dict) -> Self:
        """Read the parameters among a notebook's ``globals()``."""
        ran = [each for each in namespace.get("In", []) if each.startswith(PAPERMILL)]
        values = {name: namespace[name] for name in defaults_of(notebook)}
        try:
            for source in ran[-1:]:  # earlier ones may have been mended
                check_names(notebook, assigned_names(source))
            settings = cls.of(notebook=notebook, **values)
            settings.refuse_missing_device()
        except (TypeError, ValueError) as error:
            raise ParameterError(error) from None
        return settings

    @classmethod
    def of(cls, profile: str, notebook: str, **values: Any) -> Self:
        """Return a notebook's parameters under a profile, with other values if given."""
        values = profile_values(profile, notebook) | values
        check_names(notebook, values)
        defaults = defaults_of(notebook)
        for name, value in values.items():
            kind = type(defaults[name])
            if kind in (list, dict) and not isinstance(value, kind):
                what = f"{name} as a {kind.__name__}, which papermill takes by -y"
                raise TypeError(expected(what, repr(value)))
        return cls(notebook=notebook, tables={}, **defaults | values)

    def refuse_missing_device(self) -> None:
        """Raise ValueError for a device that is not here, even if no run is missing.

        The device of a profile is not checked, because it has trained the profile's stored
        runs, which are drawn on any machine. Those of a Ray cluster have devices of their own.
        """
        device: Any = getattr(self, "device", None)
        usual = getattr(self.of(self.profile, self.notebook), "device", None)
        if device == usual or "RAY_ADDRESS" in os.environ:
            return
        from prslib.device import check_device  # loads torch

        check_device(device)

    def write(self, table: pd.DataFrame, name: str) -> None:
        """Keep a table as CSV, also as a file if ``save`` names a folder."""
        table = table.drop(columns="draws", errors="ignore")  # arrays
        text = table.to_csv(index=False, float_format="%.6g")
        self.tables[name] = text
        if self.save:
            with replacing(Path(self.save) / f"{self.notebook}_{name}.csv") as file:
                file.write(text.encode())

    def table(self, name: str) -> pd.DataFrame:
        """Read a table that `write` kept; in a redraw also the profile's.

        Cells that draw take their numbers from here, so that a redraw, which skips the
        cells with the tag `compute`, draws the same.
        """
        text = self.tables.get(name)
        if text is None and getattr(self, "redraw", False):
            file = figures_dir(self.profile) / f"{self.notebook}_{name}.csv"
            text = file.read_text(encoding="utf-8")
        if text is None:
            raise KeyError(expected(f"a cell that writes the table {name}", "none"))
        types: dict[Hashable, type] = dict.fromkeys(TEXTS, str)
        table = pd.read_csv(
            io.StringIO(text), dtype=types, keep_default_na=False, na_values=[""]
        )
        texts = [column for column in table if table[column].dtype.kind == "O"]
        return table.fillna(dict.fromkeys(texts, ""))

    def show(
        self,
        figure: "Figure",
        name: str,
        narrow: int = 0,
        redraw: "Callable[..., Figure] | None" = None,
        **controls: "ValueWidget",
    ) -> None:
        """Display a figure of the table `name`, and write it if ``save`` names a folder.

        With `narrow` a second PNG, for phones, has the panels in as many columns. The
        profile quick has none, as no page is made of it. Controls, such as sliders, are
        above the figure; when one of them moves, ``redraw`` draws it for their values.
        """
        # slow to load; parameters do not need it
        import matplotlib.pyplot as plt
        from IPython.display import Image, display

        from prslib.report.style import stack_panels

        self.table(name)  # a picture has its numbers
        about = {"alt": describe(figure), "file": f"{self.notebook}_{name}.png"}
        about["width"] = round(figure.get_figwidth() * figure.dpi)
        picture = render(figure)
        if self.save:
            with replacing(Path(self.save) / about["file"]) as file:
                file.write(picture)
        if self.save and narrow and self.profile != "quick":
            stack_panels(figure, narrow)
            about["narrow"] = f"{self.notebook}_{name}_narrow.png"
            with replacing(Path(self.save) / about["narrow"]) as file:
                file.write(render(figure))
        plt.close(figure)  # or Jupyter would show it once more
        if redraw is None:
            display(Image(picture, metadata=about))
            return
        from prslib.report.controls import follow, lay_out

        display(lay_out(controls))
        shown = display(Image(picture, metadata=about), display_id=True)
        follow(controls, redraw, shown)

    def show_tables(
        self,
        name: str,
        what: str = "",
        metrics: Sequence[str] = MAIN_METRICS,
        by: Sequence[str] = (),
    ) -> None:
        """Display the averages of the table `name` as the paper prints them."""
        from IPython.display import display

        averages = self.table(name)
        for place, cells in averages.groupby(["dataset", "test_set"], sort=False):
            dataset, test_set = cast("tuple[str, str]", place)
            display(heading(dataset, test_set, what))
            display(*main_tables(cells, metrics, by))

    def show_contrasts(self, name: str, title: str, y: str) -> pd.DataFrame:
        """Draw the differences of the table `name`, sum them up, and return them."""
        from IPython.display import Markdown, display

        from prslib.report.style import contrast_panels

        gaps = self.table(name)
        self.show(contrast_panels(gaps, title, y), name)
        display(Markdown(in_short(gaps)))
        return gaps

    def _repr_markdown_(self) -> str:
        shown = {k: v for k, v in vars(self).items() if k not in NOT_SHOWN}
        rows = [f"| `{name}` | {value} |" for name, value in shown.items()]
        lines = ["<details><summary>Parameters</summary>", ""]
        lines += ["| parameter | value |", "|---|---|", *rows]
        return "\n".join([*lines, "", "</details>"])


def cells_with(tag: str, notebook: str) -> list[str]:
    """Return the sources of a notebook's cells with a tag, as its .py form has them.

    What somebody has tried and saved in JupyterLab changes no command and no other
    notebook.
    """
    text = notebook_file(notebook).with_suffix(".py").read_text(encoding="utf-8")
    cells = [cell.split("\n", 1) for cell in f"\n{text}".split("\n# %%")[1:]]
    return [source.strip() for about, source in cells if f'"{tag}"' in about]


def defaults_of(notebook: str) -> dict[str, Any]:
    """Execute a notebook's cell `parameters`; return what it sets."""
    source = "\n".join(cells_with("parameters", notebook))
    scope: dict[str, Any] = {}
    exec(source, scope)
    return {name: scope[name] for name in assigned_names(source)}


def profile_values(profile: str, notebook: str) -> dict:
    """Return what a profile changes of a notebook's parameters, from its YAML file."""
    one_of("profile", profile, known_profiles())
    file = params_file(profile, notebook)
    if not file.is_file():
        return {"profile": profile}
    with file.open(encoding="utf-8") as opened:  # an error names it
        return {"profile": profile} | yaml.safe_load(opened)


def assigned_names(source: str) -> list[str]:
    """Return the names that a cell assigns."""
    nodes = ast.walk(ast.parse(source))
    return [
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def check_names(notebook: str, names: Iterable[str]) -> None:
    """Raise ValueError for a name that a notebook does not declare."""
    parameters = list(defaults_of(notebook))
    for name in names:
        one_of(f"parameter of {notebook}", name, parameters)


def heading(dataset: str, test_set: str, what: str = "") -> "Markdown":
    """Return a table's heading: data set, test set, and the paper's data set."""
    from IPython.display import Markdown

    stands_for = labels_of(dataset).stands_for
    theirs = f"with the paper's {stands_for}" if stands_for else "not in the paper"
    words = f"**{dataset}, {TEST_WORDS[test_set]}**", what, theirs
    return Markdown(", ".join(filter(None, words)))


def render(figure: "Figure") -> bytes:
    """Return a figure as PNG with a palette, a third of the size of one without."""
    from PIL import Image

    drawn, file = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png")
    colours = Image.open(drawn).convert("RGB")
    palette = colours.quantize(
        256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    palette.save(file, "PNG", optimize=True)
    return file.getvalue()


def describe(figure: "Figure") -> str:
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
