"""A claim that the paper makes in words, and the test that decides it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from prslib.config import RunConfig
from prslib.report import METRICS
from prslib.report.bootstrap import Effect
from prslib.report.observations import EXTRAS, settings_of

# the rows that a claim is about, where it does not say otherwise
USUAL = {
    "varied": ("",),
    "power": ("", "own"),
    "measure": ("score",),
    "group": ("overall",),
    "metric": METRICS,
    "task": ("seen",),
    "last": (True,),
}


@dataclass(frozen=True)
class Claim:
    """A claim, where it stands, and what decides it.

    Parameters
    ----------
    statement : str
        What is claimed, in our own words.
    source : str
        Section, table or figure of the paper.
    test : str
        What is measured, in words; above 0 speaks for the claim.
    effect : callable
        Takes the mean of every cell, a row a resample, and returns that measure
        (`prslib.report.effects`).
    on : tuple of str
        The paper's data sets that the claim is about.
    columns : tuple of str
        Columns of the observations that tell the cells apart; the first is what is compared.
    where : dict
        Column to the values that count, over `USUAL`; None where any counts. All that are named
        for one of `columns` must have been run.
    several : str
        One of `columns` of which at least two values must have been run; "" for none.
    unit : str
        The effect's unit.
    """

    statement: str
    source: str
    test: str
    effect: Effect
    on: tuple[str, ...] = ("COCOseq", "NUS-WIDEseq")
    columns: tuple[str, ...] = ("method", "metric")
    where: dict[str, tuple | None] = field(default_factory=dict)
    several: str = ""
    unit: str = "points"

    def select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that the claim is about; columns that are not there do not count."""
        kept = rows["stands_for"].isin(self.on)
        for name, values in (USUAL | self.where).items():
            if values is not None and name in rows:
                kept &= rows[name].isin(values)
        return rows[kept]

    def needs(self, wanted: Sequence[RunConfig]) -> list[RunConfig]:
        """Return the configurations, of all that a profile wants, on which the claim rests.

        Parameters
        ----------
        wanted : sequence of RunConfig
            The first of each data set is its standard.

        Returns
        -------
        list of RunConfig
            In order, each once; empty where the profile does not ask for what it takes.
        """
        rows = self.select(settings_of(wanted).drop_duplicates("run"))
        extras = [EXTRAS[name] for name in self.where.get("measure", ()) if name in EXTRAS]
        needed = [wanted[row] for row in rows.index]
        return [config for config in needed if all(getattr(config, extra) for extra in extras)]

    def table(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Lay out the cells of a claim seed by seed.

        Parameters
        ----------
        rows : DataFrame
            As `prslib.report.observations.observe` gives them, of one data set.

        Returns
        -------
        DataFrame
            One row a seed, one column a cell; without rows where something has not been run.
        """
        selected, columns = self.select(rows), list(self.columns)
        selected = selected.dropna(subset=[*columns, "value"])
        if selected.empty:
            return pd.DataFrame()
        table = selected.pivot_table(index="seed", columns=columns, values="value")
        if self.several:  # of these, whatever all the others have
            levels = table.columns.get_level_values(self.several)
            counts = levels.map(levels.value_counts())
            table = table.loc[:, counts == counts.max()]
        levels = {name: set(table.columns.get_level_values(name)) for name in columns}
        named = {"metric": METRICS} | self.where
        missing = any(set(named.get(name, ())) - found for name, found in levels.items())
        gaps = len(table.columns) < math.prod(map(len, levels.values()))
        single = self.several and len(levels[self.several]) < 2
        return table.iloc[:0] if missing or gaps or single else table
