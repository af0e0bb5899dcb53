"""Compare PRS with CRS by the number of training images."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from prslib import METHODS, RunConfig, configs, configs_of, paired
from prslib.checks import one_of
from prslib.metrics import GROUP_METRICS
from prslib.report.notebook import Trained, several
from prslib.report.style import LOOKS
from prslib.report.tables import MAIN_METRICS, contrasts, labels_of
from prslib.statistics import LEVEL

WHOLE = 35_072  # training images of COCOseq


class Comparison(Trained):
    """Parameters of a notebook that compares methods; the costly take other seeds."""

    one_label = False
    memory_size: int | None = None
    costly: list[str] = several()
    costly_seeds: list[int] = several(0)

    def configs(self, methods: list[str], rhos: list[float]) -> list[RunConfig]:
        """List a run of every method and seed on each data set; one rho is that of all."""
        if len(rhos) == 1:
            rhos = rhos * len(self.dataset)
        seeds = self.seeds, self.costly, self.costly_seeds
        made = []
        for pair in paired(dataset=self.dataset, rho=rhos):
            made += configs_of(methods, *seeds, memory_size=self.memory_size, **pair)
        return made


class Settings(Comparison):
    """Parameters of the notebook, which explains them."""

    dataset: list[str] = several("cocoseq-mini", "digits49seq")
    rho: list[float] = several(-0.03, 0.0)
    seeds: list[int] = several(*range(10))
    costly: list[str] = several("digits49seq")
    thinned: list[str] = several(
        "cocoseq-mini-25", "cocoseq-mini-50", "cocoseq-mini-75"
    )
    metrics: list[str] = several(*MAIN_METRICS)


def runs(settings: Settings) -> list[RunConfig]:
    """List a run of every method and seed on each data set."""
    for name in settings.metrics:
        one_of("metric", name, GROUP_METRICS)
    return settings.configs(list(METHODS), settings.rho)


def extra_runs(settings: Settings) -> list[RunConfig]:
    """List runs of PRS and CRS on data sets with fewer images."""
    grid = {"dataset": settings.thinned, "method": ["CRS", "PRS"]}
    return configs(**grid, rho=settings.rho[0], seed=settings.seeds)


def by_images(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare PRS with CRS on data sets that differ in their number of training images alone."""
    cells = [("overall", metric) for metric in MAIN_METRICS]
    table = contrasts(rows, "PRS", "CRS", cells)
    sizes = {name: len(labels_of(name).train) for name in rows["dataset"].unique()}
    table.insert(1, "images", table["dataset"].map(sizes))
    return table.sort_values("images", kind="stable", ignore_index=True)


def plot_by_images(frame: pd.DataFrame, ax: Axes) -> Axes:
    """Draw the difference of two methods by the number of images, with its interval."""
    difference = frame["difference"]
    ends = [difference - frame["low"], frame["high"] - difference]
    look = {"color": LOOKS["PRS"]["color"], "fmt": LOOKS["PRS"]["marker"]}
    label = f"ours, {100 * LEVEL:.0f} % interval"
    ax.errorbar(frame["images"], difference, ends, label=label, **look)
    theirs = frame["published"].iloc[-1]
    ax.plot(WHOLE, theirs, "k_", markersize=12, label="paper, all images")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ticks = [*frame["images"], WHOLE]
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks], rotation=60, fontsize=8)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="training images", ylabel="PRS minus CRS (points)")
    return ax
