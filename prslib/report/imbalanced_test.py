"""Ask for the runs of the paper's unbalanced test set."""

from prslib import RunConfig, configs_of
from prslib.report.main_results import Comparison
from prslib.report.notebook import several


class Settings(Comparison):
    """Parameters of the notebook, which explains them."""

    rho: float = 0.5
    balanced_rho: float = -0.03
    method: list[str] = several("CRS", "GSS", "ExStream")


def runs(settings: Settings) -> list[RunConfig]:
    """List runs scored on both test sets, those of PRS with both powers."""
    fixed = {
        "dataset": settings.dataset,
        "memory_size": settings.memory_size,
        "test_set": ["imbalanced", "balanced"],
    }
    seeds = settings.seeds, settings.costly, settings.costly_seeds
    powers = [settings.rho, settings.balanced_rho]
    others = configs_of(settings.method, *seeds, **fixed)
    return others + configs_of(["PRS"], settings.seeds, rho=powers, **fixed)
