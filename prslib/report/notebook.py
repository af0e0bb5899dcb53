"""Read the parameters of a notebook, and show its pictures.

A notebook's cell `parameters` declares them with their defaults. A profile's YAML file
contains the parameters that it overrides. `prslib train`, `make figures` and the ledger
read both here.
"""

import io
import re
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import matplotlib.pyplot as plt
import pandas as pd
import yaml
from IPython.display import Image, Markdown, display
from ipywidgets import HBox, Layout, ValueWidget
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image as Pixels

from prslib.checks import expected, one_of
from prslib.datasets import DATASETS
from prslib.paths import (
    figures_dir,
    known_profiles,
    notebook_file,
    params_file,
    replacing,
)
from prslib.report.answers import ONE_SEED, SYNTHETIC, name_streams
from prslib.report.style import contrast_panels, join_panels, stack_panels
from prslib.report.tables import (
    TEST_WORDS,
    in_short,
    labels_of,
    main_tables,
)

PAPERMILL = "# Parameters"  # begins the cell that papermill adds
# columns of text that may be entirely empty
TEXTS = ("clearly", "stands_for", "weakest", "note", "schedule")
# parameters that pages do not list: a local folder, and what they show anyway
NOT_SHOWN = ("notebook", "save", "tables")


class ParameterError(ValueError):
    """An invalid parameter; IPython shows the message without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Settings(SimpleNamespace):
    """The values of a notebook's parameters, one attribute each."""

    notebook: str
    profile: str
    save: str
    seeds: list[int]
    tables: dict[str, str]  # CSV by name, empty at first

    @classmethod
    def read(cls, notebook: str, namespace: dict) -> Self:
        """Read the parameters among a notebook's ``globals()``."""
        ran = [each for each in namespace.get("In", []) if each.startswith(PAPERMILL)]
        values = {name: namespace[name] for name in defaults_of(notebook)}
        for source in ran[-1:]:  # errors of earlier cells may have been corrected
            values = values_of(source) | values  # unknown names are refused below
        try:
            return cls.of(notebook=notebook, **values)
        except (TypeError, ValueError) as error:
            raise ParameterError(error) from None

    @classmethod
    def of(cls, profile: str, notebook: str, **values: Any) -> Self:
        """Return a notebook's parameters under a profile, overridden by given values."""
        values = profile_values(profile, notebook) | values
        defaults = defaults_of(notebook)
        for name, value in values.items():
            kind = type(defaults[one_of(f"parameter of {notebook}", name, defaults)])
            if kind in (list, dict) and not isinstance(value, kind):
                what = f"{name} as a {kind.__name__}, which papermill sets with -y"
                raise TypeError(expected(what, repr(value)))
            if kind not in (list, dict) and isinstance(value, list | dict):
                raise TypeError(expected(f"{name} as a single value", repr(value)))
        made = cls(notebook=notebook, tables={}, **defaults | values)
        for name in ("seeds", "varied_seeds"):
            seeds = getattr(made, name, [])
            if len(set(seeds)) < len(seeds):
                raise ValueError(f"{name}: {expected('each seed once', seeds)}")
        return made

    def write(self, table: pd.DataFrame, name: str) -> None:
        """Keep a table as CSV, and write it to a file if ``save`` names a folder."""
        table = table.drop(columns="draws", errors="ignore")  # arrays
        text = table.to_csv(index=False, float_format="%.6g")
        self.tables[name] = text
        self.save_file(f"{self.notebook}_{name}.csv", text.encode())

    def save_file(self, name: str, content: bytes) -> None:
        """Write a file if ``save`` names a folder."""
        if self.save:
            with replacing(Path(self.save) / name) as file:
                file.write(content)

    def table(self, name: str) -> pd.DataFrame:
        """Read a table that `write` kept or, in a redraw, the profile's table.

        Cells that plot read their numbers from here. A redraw, which skips the cells with
        the tag `compute`, therefore makes the same pictures.
        """
        if name not in self.tables and getattr(self, "redraw", False):
            file = figures_dir(self.profile) / f"{self.notebook}_{name}.csv"
            self.tables[name] = file.read_text(encoding="utf-8")
        types: dict[Hashable, type] = dict.fromkeys(TEXTS, str)
        table = pd.read_csv(
            io.StringIO(self.tables[name]),
            dtype=types,
            keep_default_na=False,
            na_values=[""],
        )
        texts = [column for column in table if table[column].dtype.kind == "O"]
        return table.fillna(dict.fromkeys(texts, ""))

    def show(
        self,
        figure: Figure,
        name: str,
        title: str = "",
        narrow: int = 0,
        redraw: Callable[..., Figure] | None = None,
        **controls: ValueWidget,
    ) -> None:
        """Display a figure of the table `name`, and write it if ``save`` names a folder.

        A title is added together with one legend for all panels. In the profile seeds,
        from which the articles are made, `narrow` is the number of columns of panels in
        a second PNG, for phones. Controls, such as sliders, are shown above the figure,
        and ``redraw`` plots it again when one of them changes.
        """
        self.table(name)  # every picture needs a table with its numbers
        if title:
            join_panels(figure, title)
        about = {"file": f"{self.notebook}_{name}.png"}
        picture = make_picture(self.add_changed(figure), about)
        self.save_file(about["file"], cast("bytes", picture.data))
        if self.save and narrow and self.profile == "seeds":
            stack_panels(figure, narrow)
            about["narrow"] = f"{self.notebook}_{name}_narrow.png"
            self.save_file(about["narrow"], render(figure))
        if redraw is None:
            display(picture)
        else:
            show_controls(
                picture, lambda **now: self.add_changed(redraw(**now)), controls
            )

    def show_tables(self, name: str, by: Sequence[str] = ()) -> None:
        """Display the averages of the table `name` as the paper prints them."""
        averages = self.table(name)
        for _, cells in averages.groupby(["dataset", "test_set"], sort=False):
            display(heading(cells, self.say_changed()), *main_tables(cells, by))

    def show_contrasts(
        self,
        name: str,
        title: str,
        y: str,
        across: str = "metric",
        query: str = "",
    ) -> pd.DataFrame:
        """Plot the differences in the table `name`, summarise them, and return them.

        The picture has a column of panels for each value of `across`; `query` selects the
        rows that are plotted.
        """
        gaps = self.table(name)
        shown = gaps.query(query) if query else gaps
        self.show(contrast_panels(shown, title, y, across), name)
        display(Markdown(in_short(gaps)))
        return gaps

    def write_answer(self, sentence: str, dataset: str = "") -> Markdown:
        """Write the answer as a table and return it; mention one seed or synthetic data."""
        sentence = name_streams(sentence)
        is_single = len(getattr(self, "seeds", ())) == 1
        end = ONE_SEED if is_single and "one seed" not in sentence else ""
        changed = self.say_changed()
        end += f" Changed parameters: {changed.removeprefix(', ')}." if changed else ""
        source = DATASETS[dataset].data_source if dataset else ""
        answer = {"sentence": sentence + end, "data": source}
        self.write(pd.DataFrame([answer]), "sentence")
        if source == "stand-in":
            sentence += SYNTHETIC
        return Markdown(f"**{sentence}{end}**")

    def say_changed(self) -> str:
        """Return rho and the memory size if they were changed: ", rho 0.1, memory of 30"."""
        defaults = defaults_of(self.notebook)
        changed = ""
        for name, text in {"rho": "rho {:g}", "memory_size": "memory of {:g}"}.items():
            value = getattr(self, name, None)
            if isinstance(value, int | float) and value != defaults[name]:
                changed += ", " + text.format(value)
        return changed

    def add_changed(self, figure: Figure) -> Figure:
        """Add `say_changed` to a figure's title; return the figure."""
        if self.say_changed():
            figure.suptitle(figure.get_suptitle() + self.say_changed())
        return figure

    def say_seeds(
        self,
        dataset: str = "",
        seeds: Sequence[int] | None = None,
        intervals: bool = False,  # are shown, unless there is only one seed
    ) -> str:
        """Return the number of seeds, of one data set or all: "3 seeds (GSS: 1)"."""
        few = dict(getattr(self, "few_seeds", {}))
        seeds = self.seeds if seeds is None else seeds
        if dataset:
            seeds = seeds[: few.get(dataset)]
            few = {name: few[name] for name in few if name not in DATASETS}
        fewer = [f"{name}: {few[name]}" for name in few if few[name] < len(seeds)]
        text = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
        text += f" ({', '.join(fewer)})" if fewer else ""
        return f"{text}, 95 % intervals" if intervals and len(seeds) > 1 else text

    def _repr_markdown_(self) -> str:
        shown = {k: v for k, v in vars(self).items() if k not in NOT_SHOWN}
        head = "<details><summary>Parameters</summary>\n\n| parameter | value |\n|---|---|\n"
        rows = "".join(f"| `{name}` | {value} |\n" for name, value in shown.items())
        return f"{head}{rows}\n</details>"


def cells_with(tag: str, notebook: str) -> list[str]:
    """Return the sources of a notebook's cells with a tag, from its .py form.

    Changes that were saved in JupyterLab therefore affect no command or other notebook.
    """
    text = notebook_file(notebook).with_suffix(".py").read_text(encoding="utf-8")
    cells = [cell.split("\n", 1) for cell in f"\n{text}".split("\n# %%")[1:]]
    return [source.strip() for about, source in cells if f'"{tag}"' in about]


def defaults_of(notebook: str) -> dict[str, Any]:
    """Execute a notebook's cell `parameters`; return what it sets."""
    return values_of("\n".join(cells_with("parameters", notebook)))


def values_of(source: str) -> dict[str, Any]:
    """Execute a cell; return the values that it assigns."""
    scope: dict[str, Any] = {}
    exec(source, scope)
    return {name: scope[name] for name in scope if not name.startswith("__")}


def profile_values(profile: str, notebook: str) -> dict:
    """Read the parameters that a profile overrides in a notebook from the YAML file."""
    one_of("profile", profile, known_profiles())
    file = params_file(profile, notebook)
    if not file.is_file():
        return {"profile": profile}
    with file.open(encoding="utf-8") as opened:  # errors name the file
        return (yaml.safe_load(opened) or {}) | {"profile": profile}


def heading(cells: pd.DataFrame, changed: str = "") -> Markdown:
    """Return a table's heading: data set, test set, and the paper's data set."""
    dataset, test_set = cells[["dataset", "test_set"]].iloc[0]
    text = f"**{name_streams(dataset)}, {TEST_WORDS[test_set]}{changed}**"
    stands_for = labels_of(dataset).stands_for
    if not stands_for:
        text += ", not in the paper"
    elif cells["published"].notna().any():
        text += f", with the paper's numbers for {stands_for}"
        text += " in its standard setting" if changed else ""
    return Markdown(text)


def make_picture(figure: Figure, about: dict) -> Image:
    """Return a figure as a picture with an alternative text, and close it."""
    about["alt"] = describe(figure)
    about["width"] = round(figure.get_figwidth() * figure.dpi)
    plt.close(figure)  # or Jupyter would show it once more
    return Image(render(figure), metadata=about)


def show_controls(
    picture: Image, redraw: Callable[..., Figure], controls: dict[str, ValueWidget]
) -> None:
    """Display controls above a picture, which is drawn again when one of them changes.

    It is a plain picture, not a widget, so that a closed notebook keeps the last one.
    """
    for name, control in controls.items():
        control.set_trait("description", name.replace("_", " "))
        control.set_trait("style", {"description_width": "initial"})
    display(HBox(list(controls.values()), layout=Layout(flex_flow="row wrap")))
    shown = display(picture, display_id=True)

    def update(_change: object) -> None:
        values = {name: control.value for name, control in controls.items()}
        shown.update(make_picture(redraw(**values), {}))

    for control in controls.values():
        control.observe(update, "value")


def render(figure: Figure) -> bytes:
    """Return a figure as PNG with a palette, a third of the size of one without."""
    for text in figure.findobj(Text):
        text.set_text(name_streams(text.get_text()))
    drawn, file = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", pil_kwargs={"compress_level": 0})
    colours = Pixels.open(drawn).convert("RGB")
    palette = colours.quantize(
        256, Pixels.Quantize.MAXCOVERAGE, dither=Pixels.Dither.NONE
    )
    palette.save(file, "PNG")
    return file.getvalue()


def describe(figure: Figure) -> str:
    """Describe a figure to readers who cannot see it: panels, axes and legend."""
    axes = figure.axes
    plots = [ax for ax in axes if not ax.images]
    parts = {
        "Panels": [ax.get_title("left") for ax in axes],
        "Images": [ax.get_xlabel() for ax in axes if ax.images],
        "Vertical axis": [figure.get_supylabel(), *(ax.get_ylabel() for ax in plots)],
        "Horizontal axis": [ax.get_xlabel() for ax in plots],
        "Legend": [name for ax in axes for name in ax.get_legend_handles_labels()[1]],
    }
    text = f"{figure.get_suptitle()}."
    for name, words in parts.items():
        listed = "; ".join(dict.fromkeys(filter(None, words)))
        text += f" {name}: {listed}." if listed else ""
    return " ".join(re.sub(r"[$\\{}]", "", name_streams(text)).split())
