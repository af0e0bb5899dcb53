"""Ask for the runs of the paper's unbalanced test set."""

from prslib import RunConfig, configs_of
from prslib.report.notebook import Parameters


def runs(settings: Parameters) -> list[RunConfig]:
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
