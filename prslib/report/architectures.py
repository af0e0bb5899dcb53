"""The paper's base architectures: which runs its tables ask for, and ours beside theirs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from prslib import report
from prslib.models import MODELS
from prslib.training.config import Run, RunConfig, configs
from prslib.training.methods import METHODS

OFFLINE = next(name for name, method in METHODS.items() if method.offline)
PAPER_EPOCHS = (1, 10)
METHOD_TABLES = ("main", "attention_consistency", "rnn_attention")


def online_configs(networks: Sequence[dict], methods: Sequence[str], **fixed) -> list[RunConfig]:
    """Make the runs of the tables of methods on every network (Table 1, Appendix).

    Parameters
    ----------
    networks : sequence of dict
        For each network the fields "model" and "frozen_stages", the plain one first. Of that one
        nothing is frozen, as in Table 1; only the table of base architectures freezes it.
    methods : sequence of str
        Those that see one task after another.
    **fixed
        Further fields of `RunConfig`; a list stands for one run each of its values.

    Returns
    -------
    list of RunConfig
        Network by network; Multitask too where `offline_configs` has it with frozen stages only.

    Examples
    --------
    >>> networks = [{"model": "convnet", "frozen_stages": 1}, {"model": "convnet_rnn_attention"}]
    >>> made = online_configs(networks, ["CRS"])
    >>> [(config.model, config.method, config.frozen_stages) for config in made[:2]]
    [('convnet', 'CRS', 0), ('convnet', 'Multitask', 0)]
    """
    plain, *others = networks
    also = [OFFLINE] if plain["frozen_stages"] else []
    made = configs(method=[*methods, *also], **plain | {"frozen_stages": 0}, **fixed)
    return made + [c for row in others for c in configs(method=list(methods), **row, **fixed)]


def offline_configs(
    networks: Sequence[dict],
    epochs: Sequence[int],
    test_sets: Sequence[str],
    costly_models: Sequence[str] = (),
    **fixed,
) -> list[RunConfig]:
    """Make the runs of the table of base architectures: Multitask (Appendix).

    Parameters
    ----------
    networks : sequence of dict
        For each network the fields "model" and "frozen_stages".
    epochs : sequence of int
        How often the images are seen.
    test_sets : sequence of str
        What the networks are scored on.
    costly_models : sequence of str
        Those that take the first number of epochs and the first test set only.
    **fixed
        Further fields of `RunConfig`; a list stands for one run each of its values.

    Returns
    -------
    list of RunConfig
        The longest first.

    Examples
    --------
    >>> networks = [{"model": "convnet"}, {"model": "convnet_rnn_attention"}]
    >>> sets = ["balanced", "imbalanced"]
    >>> made = offline_configs(networks, [1, 2], sets, ["convnet_rnn_attention"])
    >>> [(config.model, config.epochs, config.test_set) for config in made[-2:]]
    [('convnet_rnn_attention', 1, 'balanced'), ('convnet', 1, 'imbalanced')]
    """
    made = []
    for number, count in enumerate(sorted(epochs)):
        for place, test_set in enumerate(test_sets):
            first = number == 0 and place == 0
            used = [row for row in networks if first or row["model"] not in costly_models]
            fields = {"method": OFFLINE, "epochs": count, "test_set": test_set} | fixed
            made += [config for row in used for config in configs(**fields, **row)]
    return sorted(made, key=lambda config: -config.epochs)


def rows_of(runs: Sequence[Run]) -> pd.DataFrame:
    """Take the final scores of runs on several networks (Appendix, "Base Architectures").

    Parameters
    ----------
    runs : sequence of Run
        Finished runs.

    Returns
    -------
    DataFrame
        As `report.final` gives them, with test_set, epochs, architecture (the paper's name),
        network ("convnet [ResNet101]", both names), paper_epochs (1 for one epoch, 10 for more) and
        setting ("2 [10] epochs, balanced").
    """
    scores = report.scores_of(runs, "model", "epochs", "test_set", "frozen_stages")
    rows = report.final(scores)
    names = rows["model"].map(lambda name: MODELS[name].stands_for)
    paper = (rows["epochs"] > 1).map(dict(zip((False, True), PAPER_EPOCHS, strict=True)))
    settings = zip(rows["epochs"], paper, rows["test_set"], strict=True)
    return rows.assign(
        architecture=names,
        network=rows["model"] + " [" + names + "]",
        paper_epochs=paper,
        setting=[_setting(*setting) for setting in settings],
    )


def _setting(epochs: int, paper: int, test_set: str) -> str:
    theirs = "" if epochs == paper else f" [{paper}]"
    return f"{epochs}{theirs} epoch{'s' * (epochs > 1)}, {test_set}"


def beside_offline(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the paper's table of base architectures beside Multitask's overall scores (Appendix).

    Parameters
    ----------
    rows : DataFrame
        As `rows_of` gives them.

    Returns
    -------
    DataFrame
        Multitask's overall rows with stands_for and published, in percent; of a network that was
        trained with frozen stages and without, the former, as the table has it.
    """
    chosen = _frozen(rows[(rows["method"] == OFFLINE) & (rows["group"] == "overall")], "max")
    asked = chosen.assign(epochs=chosen["paper_epochs"])
    also = ["architecture", "epochs", "test_set"]
    found = report.beside(asked, "architectures", also=also)
    return found.assign(epochs=chosen["epochs"].to_numpy())


def beside_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Set the paper's tables of methods beside ours, network by network (Appendix).

    Parameters
    ----------
    rows : DataFrame
        As `rows_of` gives them.

    Returns
    -------
    DataFrame
        The rows of one epoch and the balanced test set with stands_for and published, in percent;
        of a network that was trained with frozen stages and without, the latter.
    """
    chosen = _frozen(rows[(rows["epochs"] == 1) & (rows["test_set"] == "balanced")], "min")
    return report.beside(chosen, *METHOD_TABLES, also=["architecture"])


def _frozen(rows: pd.DataFrame, which: str) -> pd.DataFrame:
    """Choose of every network the rows with the most stages frozen, "max", or the fewest, "min"."""
    count = rows["frozen_stages"]
    return rows[count == count.groupby(rows["model"]).transform(which)]


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows as the paper's tables are: the plain network and one epoch first (Appendix).

    Parameters
    ----------
    rows : DataFrame
        With the columns architecture, epochs and test_set.

    Returns
    -------
    DataFrame
        The same rows.
    """
    ranks = rows["architecture"].map(_rank)
    keys = rows.assign(architecture=ranks)[["architecture", "epochs", "test_set"]]
    return rows.loc[keys.sort_values(list(keys), kind="stable").index].reset_index(drop=True)


def offline_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table of base architectures, ours and the paper's numbers (Appendix).

    Parameters
    ----------
    rows : DataFrame
        As `beside_offline` gives them, of one data set.

    Returns
    -------
    DataFrame
        A row for each network and setting, a column for each metric and source, in percent:
        means over seeds.
    """
    cells = in_order(rows).rename(columns={"value": "ours", "published": "paper"})
    index = ["network", "setting"]
    table = cells.pivot_table(
        index=index, columns="metric", values=["ours", "paper"], sort=False, dropna=False
    )
    order = cells[index].drop_duplicates()
    columns = [(source, metric) for metric in report.METRICS for source in ("ours", "paper")]
    table = table.reindex(pd.MultiIndex.from_frame(order))
    return table.reindex(columns=columns).swaplevel(axis=1).round(1)


def _rank(architecture: str) -> int:
    """Return an architecture's place in the table of networks."""
    return [row.stands_for for row in MODELS.values()].index(architecture)


def between_architectures(rows: pd.DataFrame) -> pd.DataFrame:
    """Subtract the plain network's overall scores from the others' (Appendix).

    Parameters
    ----------
    rows : DataFrame
        As `beside_offline` gives them.

    Returns
    -------
    DataFrame
        As `report.contrasts` gives it, with the column setting; the settings that both have.
    """
    plain = min(rows["architecture"], key=_rank)
    renamed = rows.assign(method=rows["architecture"])
    cells = [("overall", metric) for metric in report.METRICS]
    others = sorted(set(rows["architecture"]) - {plain}, key=_rank)
    found = [report.contrasts(renamed, name, plain, cells, by=["setting"]) for name in others]
    return pd.concat(found, ignore_index=True)


COLOURS = ("#56B4E9", "#E69F00", "#0072B2", "#D55E00")  # of Okabe and Ito; light, then dark


def plot_architectures(frame: pd.DataFrame, ax: Axes, metric: str) -> Axes:
    """Draw one metric by network and setting, the paper's number as a dash (Appendix).

    Parameters
    ----------
    frame : DataFrame
        Columns network, setting, seed, value and published, both in percent; one metric, one
        data set; at most four settings. Networks and settings are drawn in order of appearance.
    ax : Axes
        Where to draw.
    metric : str
        The metric's name, for the axis.

    Returns
    -------
    Axes
        With a bar for the mean over seeds, a dot for every seed and a dash for the paper.

    Raises
    ------
    ValueError
        If there are more settings than colours.
    """
    networks, settings = (list(dict.fromkeys(frame[name])) for name in ("network", "setting"))
    if len(settings) > len(COLOURS):
        raise ValueError(f"expected at most {len(COLOURS)} settings, got {len(settings)}")
    width = 0.8 / len(settings)
    found = frame.groupby("network")["setting"].agg(set)
    trained = {name: [s for s in settings if s in found[name]] for name in networks}
    for number, setting in enumerate(settings):
        part = frame[frame["setting"] == setting]
        beside = part["network"].map(lambda n, s=setting: trained[n].index(s) - len(trained[n]) / 2)
        place = part["network"].map(networks.index) + (beside + 0.5) * width
        cells = part.assign(place=place).groupby("place")
        means, theirs = cells["value"].mean(), cells["published"].first().dropna()
        ax.bar(means.index, means, width, color=COLOURS[number], label=setting)
        ax.plot(place, part["value"], "o", color="white", markeredgecolor="black", markersize=3.2)
        ends = np.array([-0.5, 0.5]) * width
        for left, right, value in zip(*np.add.outer(ends, theirs.index), theirs, strict=True):
            ax.hlines(value, left, right, color="black", linewidth=1.6, zorder=5)
    ax.set_xticks(range(len(networks)), [name.replace(" [", "\n[") for name in networks])
    ax.set_xlim(-0.5, len(networks) - 0.5)
    ax.set(xlabel="", ylabel=f"{metric} (%)")
    handles, names = ax.get_legend_handles_labels()
    if frame["published"].notna().any():
        handles, names = [*handles, Line2D([], [], color="black", linewidth=1.6)], [*names, "paper"]
    ax.legend(handles, names, ncols=len(names), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
