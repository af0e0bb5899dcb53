"""Claims about the scores of Table 1, overall and by class group."""

from functools import partial

import numpy as np

from prslib.report.claims.base import (
    ALL,
    COCO,
    NUS,
    OTHER,
    RIVALS,
    Cells,
    Claim,
    Place,
    Seed,
    declare,
    named,
)

CLAIMS: dict[str, Claim] = {}
best_scores = partial(declare, CLAIMS, question="Who has the best scores?")
gains = partial(declare, CLAIMS, question="Who gains, and who pays?")
TAIL: dict[str, Place] = {group: {"group": group} for group in ("moderate", "minority")}
EVERYONE = "Finetune, EWC, CRS, GSS, ExStream in C-F1, O-F1, mAP"


@best_scores(
    statement="PRS is best of all",
    source="Table 1",
    test=f"least lead of PRS over {EVERYONE}; overall",
    headline=True,
    implies=("above_crs", "above_gss", "above_exstream"),
)
def best(seed: Seed) -> Cells:
    return seed.lead("PRS", ALL)


def above(rival: str, more: str = "", **fields: object) -> None:
    """Declare that PRS is above another."""

    @best_scores(
        name=f"above_{rival.lower()}",
        statement=f"PRS outperforms {rival}{more}",
        source="Sec. 6.2, Table 1",
        test=f"least lead of PRS over {rival} in C-F1, O-F1, mAP; overall",
        **fields,
    )
    def above_rival(seed: Seed) -> Cells:
        return seed.lead("PRS", [rival])


above("CRS", headline=True)
above("GSS")
above("ExStream", ", which knows the classes")


@best_scores(
    statement="Finetune is the lower bound",
    source="Sec. 6.1, Baselines",
    test="least lead of any other method over Finetune in C-F1, O-F1, mAP; overall",
)
def lower_bound(seed: Seed) -> Cells:
    least = seed.score("Finetune")
    names = ("EWC", *RIVALS, "PRS")
    return {f"of {name}": seed.score(name) - least for name in names}


@best_scores(
    statement="EWC works poorly unless the network is frozen up to its last layer",
    source="Sec. 6.1, Baselines",
    test="least lead of EWC with only the last layer in training over EWC with all layers "
    "in training, in C-F1, O-F1, mAP; overall; one strength of the penalty",
    on=(COCO,),
)
def ewc_frozen(seed: Seed) -> Cells:
    # EWC freezes no more than the other setting says
    alone: Place = {"pretrained_stages": OTHER}
    below_head: Place = {**alone, "frozen_stages": OTHER}
    frozen = seed.score("EWC", **below_head)
    return {"": frozen - seed.score("EWC", **alone)}


@best_scores(
    statement="Multitask is the upper bound",
    source="Sec. 6.1, Baselines; Table 1",
    test="least lead of Multitask over PRS in C-F1, O-F1, mAP; overall",
)
def upper_bound(seed: Seed) -> Cells:
    return seed.lead("Multitask", ["PRS"])


@gains(
    statement="On the majority only CRS is ahead of PRS",
    source="Sec. 6.2, Intra-task Imbalance",
    test="least lead of PRS over EWC, GSS, ExStream in C-F1, O-F1, mAP; majority",
    headline=True,
)
def majority(seed: Seed) -> Cells:
    cells = seed.lead("PRS", ["EWC", "GSS", "ExStream"], group="majority")
    return {f"{name} majority": value for name, value in cells.items()}


@gains(
    statement="CRS may be better than PRS on the majority",
    source="Sec. 6.2, Memory Distribution; Table 1",
    test="mean lead of CRS over PRS in C-F1, O-F1, mAP; majority",
    over="mean",
    headline=True,
)
def crs_majority(seed: Seed) -> Cells:
    return seed.lead("CRS", ["PRS"], group="majority")


@gains(
    statement="CRS pays for it on the moderate and minority classes",
    source="Sec. 6.2, Memory Distribution",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; moderate and minority",
)
def crs_sacrifices(seed: Seed) -> Cells:
    return named(TAIL, lambda place: seed.lead("PRS", ["CRS"], **place))


@gains(
    statement="PRS is best on the moderate and the minority classes",
    source="Sec. 6.2, Intra-task Imbalance",
    test=f"least lead of PRS over {EVERYONE}; moderate and minority",
    implies=("crs_sacrifices",),
)
def best_on_tail(seed: Seed) -> Cells:
    return named(TAIL, lambda place: seed.lead("PRS", ALL, **place))


@gains(
    statement="PRS keeps the knowledge of head and tail balanced",
    source="Abstract; Sec. 7",
    test="majority less minority under CRS, less the same under PRS, "
    "mean of C-F1, O-F1 and mAP",
    over="mean",
)
def head_and_tail(seed: Seed) -> Cells:

    def gap(method: str) -> np.ndarray:
        head = seed.score(method, group="majority")
        return head - seed.score(method, group="minority")

    return {"": gap("CRS") - gap("PRS")}


@gains(
    statement="PRS is better than CRS on the smallest task",
    source="Sec. 6.2, Fig. 4",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; task 3 at the end",
    on=(NUS,),
)
def smallest_task_crs(seed: Seed) -> Cells:
    return seed.lead("PRS", ["CRS"], task="3")


@gains(
    statement="PRS is the best of all on the smallest task",
    source="Sec. 6.2, Fig. 4",
    test=f"least lead of PRS over {EVERYONE}; task 3 at the end",
    on=(NUS,),
    implies=("smallest_task_crs",),
)
def smallest_task(seed: Seed) -> Cells:
    return seed.lead("PRS", ALL, task="3")
