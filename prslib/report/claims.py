"""A claim that the paper makes in words, and the test that decides it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from prslib.report import METRICS
from prslib.report import statistics as effects
from prslib.report.observations import EXTRAS, settings_of
from prslib.report.statistics import Effect, Least
from prslib.training.config import RunConfig

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
        (`prslib.report.statistics`).
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


COCO, NUS = "COCOseq", "NUS-WIDEseq"
MNIST, SVHN = "Imbal-MNISTseq", "Imbal-SVHNseq"
PLAIN, ATTENTION = "ResNet101", ("Attention Consistency", "RNN-Attention")
RIVALS = ("CRS", "GSS", "ExStream")  # that the text names where it says "all the baselines"
ALL = ("Finetune", "EWC", *RIVALS)
AT_EVERY_TASK = {"last": (True, False)}
SCHEDULES = {"varied": ("", "schedule")}
SIZES = {"varied": ("", "memory_size"), "memory": (0.5, 1.0, 1.5)}
# a network of its own may freeze stages and have a step size of its own
ATTENTIVE = ("model", "frozen_stages,model", "learning_rate,model")
MODELS = {"varied": ("", *ATTENTIVE)}
OFFLINE = {"method": ("Multitask",), "varied": ("frozen_stages", *ATTENTIVE)}
ACCURACY = {"metric": ("accuracy",), "task": ("all",)}
AS_IT_COMES = {"varied": ("test_set", "rho,test_set"), "power": ("", "0.5")}
SHARE = {"measure": ("share",)}
DISTANCE = SHARE | {"metric": ("to stream", "to equal")}
ANY_RHO = {"varied": ("", "rho"), "method": ("PRS",)}


def leads(statement: str, source: str, *others: str, place: str = "overall", **fields) -> Claim:
    """Return the claim that PRS is above others in every cell that counts."""
    metrics = ", ".join(fields.get("where", {}).get("metric", METRICS))
    test = f"least lead of PRS over {', '.join(others)} in any of {metrics}; {place}"
    where = {"method": ("PRS", *others)} | fields.pop("where", {})
    return Claim(statement, source, test, effects.beats("PRS", *others), where=where, **fields)


def forgets_the_tail(method: str) -> Claim:
    """Return the claim that a method forgets the rare classes more (Figure 1)."""
    where = {"method": (method,), "measure": ("forget",), "group": ("majority", "minority")}
    return Claim(
        f"{method} forgets the minority more than the majority",
        "Sec. 2, Fig. 1; Table 1",
        "forgetting of the minority less that of the majority, mean of C-F1, O-F1 and mAP",
        effects.gains("minority", "majority"),
        columns=("group", "metric"),
        where=where,
    )


def steadier_than(method: str) -> Claim:
    """Return the claim that PRS hangs less on the schedule than another method (Table 2)."""
    return Claim(
        f"PRS varies less from schedule to schedule than {method}",
        "Sec. 6.2, Table 2; Appendix, permuted schedules",
        f"s.d. over schedules of {method} less that of PRS; mean of C-F1, O-F1 and mAP, overall",
        effects.steadier("PRS", method),
        columns=("method", "schedule", "metric"),
        where={"method": ("PRS", method), **SCHEDULES},
        several="schedule",
    )


def nearer_to(method: str, aim: str, other: str, statement: str, source: str, *on: str) -> Claim:
    """Return the claim that a memory is nearer to one mix than to another (Figure 5)."""
    return Claim(
        statement,
        source,
        f"total variation distance of {method}'s memory {other} less that {aim}",
        effects.beats(other, aim),
        on=on,
        columns=("metric", "method"),
        where={"method": (method,), **DISTANCE},
        unit="points of memory",
    )


def at_any_time(statement: str, *others: str) -> Claim:
    """Return the claim that PRS is above others whenever a task has been trained."""
    return Claim(
        statement,
        "Appendix, Task Progression Results",
        f"least lead of PRS over {', '.join(others)} in any of {', '.join(METRICS)}; after each "
        "task but the first, which may fit into the memory",
        effects.after_the_first(effects.beats("PRS", *others)),
        columns=("method", "trained_tasks", "metric"),
        where={"method": ("PRS", *others), **AT_EVERY_TASK},
    )


def more_varied_than(method: str) -> Claim:
    """Return the claim that PRS has a higher gradient variance than another method."""
    return Claim(
        f"PRS keeps a higher gradient variance than {method}",
        "Appendix, Gradient Variance",
        "geometric mean over the stream of the memory's gradient variance, "
        f"PRS over {method}, less 100 %",
        effects.times("PRS", method),
        on=(COCO, MNIST),
        where={
            "method": ("PRS", method),
            "measure": ("variance",),
            "metric": ("gradient variance",),
        },
        unit="%",
    )


CLAIMS: dict[str, Claim] = {
    "tail_crs": forgets_the_tail("CRS"),
    "tail_ewc": forgets_the_tail("EWC"),
    "crs_follows": nearer_to(
        "CRS",
        "to stream",
        "to equal",
        "CRS's memory is as long-tailed as the stream",
        "Sec. 3.2; Sec. 6.2, Fig. 5",
        *(COCO, NUS),
    ),
    "crs_head": Claim(
        "CRS fills its memory with the majority",
        "Sec. 6.2, Fig. 5",
        "share of CRS's memory that the majority has, less that of the minority",
        effects.gains("majority", "minority"),
        on=(COCO,),
        columns=("group", "metric"),
        where={
            "method": ("CRS",),
            "metric": ("memory",),
            "group": ("majority", "minority"),
            **SHARE,
        },
        unit="points of memory",
    ),
    "prs_balances": nearer_to(
        "PRS",
        "to equal",
        "to stream",
        "PRS's memory is balanced without task information",
        "Sec. 6.2, Fig. 5",
        COCO,
    ),
    "exstream_balances": nearer_to(
        "ExStream",
        "to equal",
        "to stream",
        "ExStream's memory is balanced, with the classes known in advance",
        "Sec. 6.2, Fig. 5",
        COCO,
    ),
    "gss_moderate": Claim(
        "GSS keeps more of the moderate classes than CRS",
        "Sec. 6.2, Fig. 5",
        "share of the memory that the moderate classes have, GSS less CRS",
        effects.gains("GSS", "CRS"),
        on=(COCO,),
        where={
            "method": ("GSS", "CRS"),
            "metric": ("memory",),
            "group": ("moderate",),
            **SHARE,
        },
        unit="points of memory",
    ),
    "gss_minority": Claim(
        "GSS keeps too little of the minority, PRS enough",
        "Sec. 6.2, Fig. 5",
        "share of the memory that the minority has, PRS less GSS",
        effects.gains("PRS", "GSS"),
        on=(COCO,),
        where={
            "method": ("PRS", "GSS"),
            "metric": ("memory",),
            "group": ("minority",),
            **SHARE,
        },
        unit="points of memory",
    ),
    "best": leads("PRS is best of all", "Table 1", *ALL),
    "above_crs": leads("PRS outperforms CRS", "Sec. 6.2, Table 1", "CRS"),
    "above_gss": leads("PRS outperforms GSS", "Sec. 6.2, Table 1", "GSS"),
    "above_exstream": leads(
        "PRS outperforms ExStream, which knows the classes", "Sec. 6.2, Table 1", "ExStream"
    ),
    "lower_bound": Claim(
        "Finetune is the lower bound",
        "Sec. 6.1, Baselines",
        "least lead of any other method over Finetune in any of C-F1, O-F1, mAP; overall",
        effects.above_floor("Finetune", *ALL[1:], "PRS"),
        where={"method": (*ALL, "PRS")},
    ),
    "upper_bound": Claim(
        "Multitask is the upper bound",
        "Sec. 6.1, Baselines; Table 1",
        "least lead of Multitask over PRS in any of C-F1, O-F1, mAP; overall",
        effects.beats("Multitask", "PRS"),
        where={"method": ("Multitask", "PRS")},
    ),
    "majority": Claim(
        "PRS is at least the runner-up on the majority",
        "Sec. 6.2, Intra-task Imbalance",
        "least lead of PRS over the second best of EWC, CRS, GSS, ExStream; majority",
        effects.runner_up("PRS", *ALL[1:]),
        where={"method": (*ALL[1:], "PRS"), "group": ("majority",)},
    ),
    "crs_majority": Claim(
        "CRS may be better than PRS on the majority",
        "Sec. 6.2, Memory Distribution",
        "lead of CRS over PRS, mean of C-F1, O-F1 and mAP; majority",
        effects.gains("CRS", "PRS"),
        where={"method": ("CRS", "PRS"), "group": ("majority",)},
    ),
    "crs_sacrifices": leads(
        "CRS pays for it on the moderate and minority classes",
        "Sec. 6.2, Memory Distribution",
        "CRS",
        place="moderate and minority",
        columns=("method", "group", "metric"),
        where={"group": ("moderate", "minority")},
    ),
    "best_on_tail": leads(
        "PRS is best on the moderate and the minority classes",
        "Sec. 6.2, Intra-task Imbalance",
        *ALL,
        place="moderate and minority",
        columns=("method", "group", "metric"),
        where={"group": ("moderate", "minority")},
    ),
    "gains_most": Claim(
        "The gain is largest on the minority",
        "Sec. 6.2, Table 1",
        "gain of PRS over CRS on the minority less the larger one of the other two groups, mean "
        "of C-F1, O-F1 and mAP",
        effects.gains_most("PRS", "CRS", "minority"),
        columns=("method", "group", "metric"),
        where={"method": ("PRS", "CRS"), "group": ("majority", "moderate", "minority")},
    ),
    "head_and_tail": Claim(
        "PRS keeps the knowledge of head and tail balanced",
        "Abstract; Sec. 7",
        "majority less minority under CRS, less the same under PRS, mean of C-F1, O-F1 and mAP",
        effects.gap_closes("PRS", "CRS", "majority", "minority"),
        columns=("method", "group", "metric"),
        where={"method": ("PRS", "CRS"), "group": ("majority", "minority")},
    ),
    "smallest_task_crs": leads(
        "PRS is better than CRS on the smallest task",
        "Sec. 6.2, Fig. 4",
        "CRS",
        place="task 3 at the end",
        on=(NUS,),
        where={"task": ("3",)},
    ),
    "smallest_task": leads(
        "PRS is the best of all on the smallest task",
        "Sec. 6.2, Fig. 4",
        *ALL,
        place="task 3 at the end",
        on=(NUS,),
        where={"task": ("3",)},
    ),
    "steadier_crs": steadier_than("CRS"),
    "steadier_gss": steadier_than("GSS"),
    "steadier_exstream": steadier_than("ExStream"),
    "schedules_crs": leads(
        "PRS outperforms CRS in every schedule",
        "Sec. 6.2, Table 2; Appendix, permuted schedules",
        "CRS",
        place="each schedule",
        columns=("method", "schedule", "metric"),
        where=SCHEDULES,
        several="schedule",
    ),
    "schedules": leads(
        "PRS outperforms all in every schedule",
        "Sec. 6.2, Table 2; Appendix, permuted schedules",
        *RIVALS,
        place="each schedule",
        columns=("method", "schedule", "metric"),
        where=SCHEDULES,
        several="schedule",
    ),
    "memory_crs": leads(
        "PRS outperforms CRS with every size of memory",
        "Sec. 6.2, Table 2; Appendix, memory sizes",
        "CRS",
        place="half, whole and one and a half times the memory",
        columns=("method", "memory", "metric"),
        where=SIZES,
    ),
    "memory": leads(
        "PRS outperforms all with every size of memory",
        "Sec. 6.2, Table 2; Appendix, memory sizes",
        *RIVALS,
        place="half, whole and one and a half times the memory",
        columns=("method", "memory", "metric"),
        where=SIZES,
    ),
    "memory_flattens": Claim(
        "More memory helps less and less",
        "Appendix, Different Memory Sizes",
        "gain of PRS from half to the whole memory less that from there to one and a half, mean "
        "of C-F1, O-F1 and mAP; overall",
        effects.flattens(0.5, 1.0, 1.5),
        on=(NUS,),
        columns=("memory", "metric"),
        where={"method": ("PRS",), **SIZES},
    ),
    "rho_best": Claim(
        "rho near balance, within [-0.2, 0.2], is best",
        "Sec. 6.1; Sec. 6.2, Fig. 6",
        "least lead, in C-F1, O-F1, mAP, of the best rho within [-0.2, 0.2] on the best outside",
        Least(effects.near_balance),
        on=(COCO,),
        columns=("rho", "metric"),
        where={**ANY_RHO, "power": None},
        several="rho",
    ),
    "rho_declines": Claim(
        "Away from balance the performance declines in all metrics",
        "Sec. 6.2, Fig. 6",
        "least loss, in C-F1, O-F1, mAP, of any step of rho away from 0",
        Least(effects.losses),
        on=(COCO,),
        columns=("rho", "metric"),
        where={**ANY_RHO, "power": None},
        several="rho",
    ),
    "features": Claim(
        "PRS's features tell the minority classes apart better than CRS's",
        "Sec. 6.2, Feature Analysis, Fig. 7",
        "k-nearest-neighbour accuracy on the minority's test images, PRS less CRS",
        effects.beats("PRS", "CRS"),
        on=(COCO, MNIST),
        where={
            "method": ("PRS", "CRS"),
            "measure": ("features",),
            "metric": ("kNN accuracy",),
            "group": ("minority",),
        },
    ),
    "variance_crs": more_varied_than("CRS"),
    "variance_gss": more_varied_than("GSS"),
    "single_crs": leads(
        "With one label an image PRS is above CRS too",
        "Appendix, Single-Labeled Classification",
        "CRS",
        place="whole test set at the end",
        on=(MNIST, SVHN),
        where=ACCURACY,
    ),
    "single_gss": leads(
        "With one label an image PRS is above GSS too",
        "Appendix, Single-Labeled Classification",
        "GSS",
        place="whole test set at the end",
        on=(MNIST, SVHN),
        where=ACCURACY,
    ),
    "after_four": leads(
        "With one label an image PRS is ahead of CRS after four tasks",
        "Appendix, Task Progression Results",
        "CRS",
        place="whole test set after task 4",
        on=(MNIST, SVHN),
        where={**ACCURACY, "last": (False,), "trained_tasks": (4,)},
    ),
    "any_time_crs": at_any_time("PRS is ahead of CRS at any point of the training", "CRS"),
    "any_time": at_any_time("PRS is ahead of all at any point of the training", *ALL),
    "lead_grows": Claim(
        "PRS becomes more effective with the number of tasks",
        "Appendix, Task Progression Results",
        "lead of PRS over CRS at the end less that after the first task, mean of C-F1, O-F1, mAP",
        effects.lead_grows("PRS", "CRS"),
        columns=("method", "trained_tasks", "metric"),
        where={"method": ("PRS", "CRS"), **AT_EVERY_TASK},
    ),
    "imbalanced_crs": leads(
        "With rho 0.5 PRS is above CRS on the imbalanced test set",
        "Appendix, Imbalanced test-set",
        "CRS",
        on=(COCO,),
        where=AS_IT_COMES,
    ),
    "imbalanced": leads(
        "With rho 0.5 PRS is above all on the imbalanced test set",
        "Appendix, Imbalanced test-set",
        *RIVALS,
        on=(COCO,),
        where=AS_IT_COMES,
    ),
    "imbalanced_majority": Claim(
        "With rho 0.5 PRS is at least the runner-up on the majority",
        "Appendix, Imbalanced test-set",
        "least lead of PRS over the second best of CRS, GSS, ExStream; majority",
        effects.runner_up("PRS", *RIVALS),
        on=(COCO,),
        where={"method": ("PRS", *RIVALS), "group": ("majority",), **AS_IT_COMES},
    ),
    "architectures_crs": leads(
        "PRS is above CRS on every architecture",
        "Appendix, Base Architectures",
        "CRS",
        place="plain net and both attention nets",
        on=(COCO,),
        columns=("method", "architecture", "metric"),
        where={"architecture": (PLAIN, *ATTENTION), **MODELS},
    ),
    "architectures": leads(
        "PRS is above ExStream on every architecture",
        "Appendix, Base Architectures",
        "ExStream",
        place="plain net and both attention nets",
        on=(COCO,),
        columns=("method", "architecture", "metric"),
        where={"architecture": (PLAIN, *ATTENTION), **MODELS},
    ),
    "plain_multitask": Claim(
        "In one offline epoch the plain network is the best architecture",
        "Appendix, Base Architectures",
        "least lead of the plain network over both attention nets in C-F1, O-F1, mAP; Multitask",
        effects.beats(PLAIN, *ATTENTION),
        columns=("architecture", "metric"),
        where={"architecture": (PLAIN, *ATTENTION), **OFFLINE},
    ),
    "plain_online": Claim(
        "In the online stream the plain network is the best architecture",
        "Appendix, Base Architectures",
        "least lead of the plain network over both attention nets in C-F1, O-F1, mAP; PRS",
        effects.beats(PLAIN, *ATTENTION),
        on=(COCO,),
        columns=("architecture", "metric"),
        where={"method": ("PRS",), "architecture": (PLAIN, *ATTENTION), **MODELS},
    ),
    "balanced_is_harder": Claim(
        "A balanced test set is harder than one as it comes",
        "Appendix, Base Architectures",
        "Multitask on the imbalanced less on the balanced test set, least of C-F1, O-F1 and mAP",
        effects.beats("imbalanced", "balanced"),
        columns=("test_set", "metric"),
        where={
            "method": ("Multitask",),
            "test_set": ("balanced", "imbalanced"),
            "varied": ("frozen_stages", "frozen_stages,test_set"),
        },
    ),
}
