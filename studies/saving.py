"""Write the tables of studies."""

import pandas as pd

from prslib.paths import figures_dir


def save(table: pd.DataFrame, name: str) -> None:
    """Write a study's table to figures/studies and print it."""
    path = figures_dir("studies") / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    print(table.to_string(index=False))
