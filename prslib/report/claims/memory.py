"""Claims about forgetting, and about what is in the memory."""

from functools import partial

from prslib.report.claims.base import COCO, MARGINS, NUS, Cells, Claim, Seed, declare

CLAIMS: dict[str, Claim] = {}
FORGETTING = "Are the rare classes forgotten first?"
forgetting = partial(declare, CLAIMS, question=FORGETTING, over="mean")
memory = partial(
    declare,
    CLAIMS,
    question="What is in the memory?",
    source="Sec. 6.2, Fig. 5",
    over="mean",
    on=(COCO,),
    metrics=("memory",),
    unit="points of memory",
)
# how forgetting is measured: (of a group, by class size, in words)
AS_A_SHARE = ("forget", "order", "as a share of what it knew", "as a share of the best")
IN_POINTS = ("lost", "order_lost", "in points", "in points")


def forgets_the_tail(method: str, measure: str, how: str, **fields: object) -> None:
    """Declare that a method forgets the minority more."""
    suffix = "" if measure == "forget" else "_lost"

    @forgetting(
        name=f"tail_{method.lower()}{suffix}",
        statement=f"{method} forgets the minority more than the majority, {how}",
        source="Sec. 2, Fig. 1; Table 1",
        test=f"forgetting of mAP {how}, of the minority less that of the majority",
        metrics=("mAP",),
        **fields,
    )
    def more_of_the_minority(seed: Seed) -> Cells:
        rare = seed.score(method, group="minority", measure=measure)
        return {"": rare - seed.score(method, group="majority", measure=measure)}


def forgets_small_classes(method: str, metric: str, measure: str, how: str) -> None:
    """Declare that a method forgets small classes more, task by task."""
    suffix = "_lost" if measure == "order_lost" else ""
    # Figure 1 has a memory of 1000, half of the standard; EWC has none
    share, where = (0.5, "; half the memory") if method == "CRS" else (None, "")

    @forgetting(
        name=f"order_{method}_{metric}{suffix}".lower(),
        statement=f"{method} forgets small classes more than large ones, in {metric}, {how}",
        source="Sec. 2, Fig. 1",
        test=f"rank correlation of a class's size with its forgetting of {metric} {how}, "
        f"mean over tasks, sign reversed{where}",
        on=(COCO,),
        metrics=(metric,),
        unit="rank correlation",
    )
    def more_of_small_ones(seed: Seed) -> Cells:
        return {"": -seed.score(method, measure=measure, memory_size=share)}


for _method in ("CRS", "EWC"):
    for _measure, _, _how, _ in (AS_A_SHARE, IN_POINTS):
        forgets_the_tail(_method, _measure, _how, headline=_method == "CRS")
for _method in ("CRS", "EWC"):
    for _metric in ("AP", "F1"):
        for _, _measure, _, _how in (AS_A_SHARE, IN_POINTS):
            forgets_small_classes(_method, _metric, _measure, _how)


@memory(
    statement="CRS's memory is as long-tailed as the stream",
    source="Sec. 3.2; Sec. 6.2, Fig. 5",
    test="total variation distance of CRS's memory to equal less that to stream",
    on=(COCO, NUS),
)
def crs_follows(seed: Seed) -> Cells:
    to_equal = seed.score("CRS", measure="to equal")
    return {"": to_equal - seed.score("CRS", measure="to stream")}


@memory(
    statement="CRS fills its memory with the majority",
    test="share of CRS's memory that the majority has, less that of the minority",
)
def crs_head(seed: Seed) -> Cells:
    majority = seed.score("CRS", measure="majority")
    return {"": majority - seed.score("CRS", measure="minority")}


@memory(
    statement="The largest fifth of the classes has most of the data",
    source="Sec. 5.2",
    test="share that they have of the labels of the stream's own classes, less 50 %; the "
    "paper says it of all classes of MSCOCO and NUS-WIDE",
    on=(COCO, NUS),
    unit="points of the labels",
    printed=((COCO, 0.7), (NUS, 26.3)),
    fact=True,
)
def largest_fifth(seed: Seed) -> Cells:
    return {"": seed.score("CRS", measure="largest fifth of stream") - 50}


@memory(
    statement="PRS gives the largest fifth of the classes less of the memory than CRS",
    test="share of the memory that they have, CRS less PRS",
)
def largest_fifth_memory(seed: Seed) -> Cells:
    crs = seed.score("CRS", measure="largest fifth")
    return {"": crs - seed.score("PRS", measure="largest fifth")}


@memory(
    statement="With rho 1 PRS's memory is as near to the stream as CRS's",
    source="Sec. 3.4",
    test="2 points less how much farther from the stream PRS's memory is than CRS's, "
    "in total variation",
    margin=0.0,  # it is part of the effect
)
def rho_one(seed: Seed) -> Cells:
    crs = seed.score("CRS", measure="to stream")
    prs = seed.score("PRS", measure="to stream", rho=1.0)
    return {"": MARGINS["points of memory"] - (prs - crs)}


@memory(
    statement="PRS's memory is balanced without task information",
    test="total variation distance of PRS's memory to stream less that to equal",
    headline=True,
)
def prs_balances(seed: Seed) -> Cells:
    to_stream = seed.score("PRS", measure="to stream")
    return {"": to_stream - seed.score("PRS", measure="to equal")}


@memory(
    statement="ExStream's memory is balanced, with the classes known in advance",
    test="total variation distance of ExStream's memory to stream less that to equal",
)
def exstream_balances(seed: Seed) -> Cells:
    to_stream = seed.score("ExStream", measure="to stream")
    return {"": to_stream - seed.score("ExStream", measure="to equal")}


@memory(
    statement="GSS keeps more of the moderate classes than CRS",
    test="share of the memory that the moderate classes have, GSS less CRS",
)
def gss_moderate(seed: Seed) -> Cells:
    gss = seed.score("GSS", measure="moderate")
    return {"": gss - seed.score("CRS", measure="moderate")}


@memory(
    statement="GSS keeps too little of the minority, PRS enough",
    test="share of the memory that the minority classes have, PRS less GSS",
)
def gss_minority(seed: Seed) -> Cells:
    prs = seed.score("PRS", measure="minority")
    return {"": prs - seed.score("GSS", measure="minority")}
