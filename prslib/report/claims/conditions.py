"""Claims about other orders, memories, networks, test sets and data."""

from functools import partial
from itertools import pairwise

import numpy as np

from prslib.report.claims.base import (
    ALL,
    COCO,
    MNIST,
    NUS,
    OTHER,
    RIVALS,
    SVHN,
    Cells,
    Claim,
    Place,
    Seed,
    declare,
    named,
)

CLAIMS: dict[str, Claim] = {}
orders = partial(
    declare,
    CLAIMS,
    question="Does the order of the tasks matter?",
    source="Sec. 6.2, Table 2; Appendix, permuted schedules",
)
sizes = partial(
    declare,
    CLAIMS,
    question="Does the size of the memory matter?",
    source="Sec. 6.2, Table 2; Appendix, memory sizes",
)
balance = partial(declare, CLAIMS, question="Is balance best?", on=(COCO,))
inside = partial(
    declare, CLAIMS, question="What do features and gradients show?", over="mean"
)
single = partial(
    declare,
    CLAIMS,
    question="Does it hold with one label an image?",
    source="Appendix, Single-Labeled Classification",
    on=(MNIST, SVHN),
    metrics=("accuracy",),
)
times = partial(
    declare,
    CLAIMS,
    question="Does it hold at any time?",
    source="Appendix, Task Progression Results",
)
unbalanced = partial(
    declare,
    CLAIMS,
    question="Does it hold on unbalanced test images?",
    source="Appendix, Imbalanced test-set",
    on=(COCO,),
)
networks = partial(
    declare,
    CLAIMS,
    question="Does it hold with other networks?",
    source="Appendix, Base Architectures",
    of_images=True,
)

THREE = "CRS, GSS, ExStream in C-F1, O-F1, mAP"
BALANCED = 0.2  # the paper sets rho within [-0.2, 0.2]
SIZES: dict[str, Place] = {
    "half memory": {"memory_size": 0.5},
    "whole memory": {},
    "one and a half memory": {"memory_size": 1.5},
}
# the architecture tables freeze a stage of these two networks
PLAIN: Place = {"frozen_stages": OTHER}
CONSISTENCY: Place = {"model": "Attention Consistency", "frozen_stages": OTHER}
ATTENTION: dict[str, Place] = {
    "Attention Consistency": CONSISTENCY,
    "RNN-Attention": {"model": "RNN-Attention"},
}
NETWORKS: dict[str, Place] = {"plain net": {}, **ATTENTION}


def steadier(rival: str) -> None:
    """Declare that PRS depends less on the schedule than another (Table 2)."""

    @orders(
        name=f"steadier_{rival.lower()}",
        statement=f"PRS varies less from schedule to schedule than {rival}",
        test=f"variance over schedules of {rival} less that of PRS, the seeds' noise left "
        "out of ours; mean of C-F1, O-F1 and mAP, overall",
        over="mean",
        unit="square points",
        across=fewer_squares,
    )
    def scores_of_both(seed: Seed) -> Cells:
        schedules = seed.scores.levels("schedule", "PRS", rival)
        pairs = [
            [seed.score(method, schedule=schedule) for method in (rival, "PRS")]
            for schedule in schedules
        ]
        return {"": np.array(pairs)}


def fewer_squares(scores: np.ndarray) -> np.ndarray:
    """Return the rival's variance over schedules less that of PRS."""
    variances = schedule_variance(scores)  # (metrics, methods, 1 + draws)
    return variances[:, 0] - variances[:, 1]


def schedule_variance(scores: np.ndarray) -> np.ndarray:
    """Average the covariances over schedules of all pairs of different seeds."""
    seeds, _, schedules = scores.shape[:3]  # (seeds, metrics, schedules, ...)
    scores = scores - scores.mean(axis=2, keepdims=True)
    total = (scores.sum(axis=0) ** 2).sum(axis=1)
    pairs = seeds**2
    if seeds > 1:  # the pairs of a seed and itself alone have the seeds' noise
        total = total - (scores**2).sum(axis=(0, 2))
        pairs = seeds * (seeds - 1)
    return total / pairs / (schedules - 1)


for _rival in RIVALS:
    steadier(_rival)


def in_every_schedule(seed: Seed, others: tuple[str, ...]) -> Cells:
    """Return PRS's leads in every schedule that all were run with."""
    schedules = seed.scores.levels("schedule", "PRS", *others)
    places: dict[str, Place] = {
        f"schedule {s or 'of Table 1'}": {"schedule": s} for s in schedules
    }
    return named(places, lambda place: seed.lead("PRS", others, **place))


@orders(
    statement="PRS outperforms CRS in every schedule",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; each schedule",
    headline=True,
    implies=("above_crs",),
)
def schedules_crs(seed: Seed) -> Cells:
    return in_every_schedule(seed, ("CRS",))


@orders(
    statement="PRS outperforms all in every schedule",
    test=f"least lead of PRS over {THREE}; each schedule",
    implies=("schedules_crs", "above_gss", "above_exstream"),
)
def schedules(seed: Seed) -> Cells:
    return in_every_schedule(seed, RIVALS)


@sizes(
    statement="PRS outperforms CRS with every size of memory",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; "
    "half, whole and one and a half times the memory",
    implies=("above_crs",),
)
def memory_crs(seed: Seed) -> Cells:
    return named(SIZES, lambda place: seed.lead("PRS", ["CRS"], **place))


@sizes(
    statement="PRS outperforms all with every size of memory",
    test=f"least lead of PRS over {THREE}; "
    "half, whole and one and a half times the memory",
    implies=("memory_crs", "above_gss", "above_exstream"),
)
def memory(seed: Seed) -> Cells:
    return named(SIZES, lambda place: seed.lead("PRS", RIVALS, **place))


@sizes(
    statement="From half to the whole memory PRS gains much",
    source="Appendix, Different Memory Sizes",
    test="PRS with the whole memory less PRS with half of it, "
    "mean of C-F1, O-F1 and mAP; overall",
    over="mean",
    on=(NUS,),
)
def memory_jump(seed: Seed) -> Cells:
    return {"": seed.score("PRS") - seed.score("PRS", memory_size=0.5)}


@sizes(
    statement="More memory helps less and less",
    source="Appendix, Different Memory Sizes",
    test="gain of PRS from half to the whole memory less that from there to one and a "
    "half, mean of C-F1, O-F1 and mAP; overall",
    over="mean",
    on=(NUS,),
)
def memory_flattens(seed: Seed) -> Cells:
    least = seed.score("PRS", memory_size=0.5)
    most = seed.score("PRS", memory_size=1.5)
    return {"": 2 * seed.score("PRS") - least - most}


def by_rho(seed: Seed) -> dict[float, np.ndarray]:
    """Return PRS's scores by rho, from the lowest to the highest."""
    scores = {}
    for rho in seed.scores.levels("rho", "PRS"):
        value = seed.scores.rho if rho is None else rho
        scores[float(value)] = seed.score("PRS", rho=rho)
    return dict(sorted(scores.items()))


@balance(
    statement="rho near balance is better than rho far from it",
    source="Sec. 6.1; Sec. 6.2, Fig. 6",
    test="least lead, in C-F1, O-F1, mAP, of the mean over rho within [-0.2, 0.2] over "
    "the lowest and the highest rho",
    headline=True,
)
def rho_ends(seed: Seed) -> Cells:
    scores = by_rho(seed)
    near = [scores[rho] for rho in scores if abs(rho) <= BALANCED]
    ends = [*scores][:1] + [*scores][-1:]
    far = [rho for rho in ends if abs(rho) > BALANCED and near]
    return {f"over rho {rho:g}": np.mean(near, axis=0) - scores[rho] for rho in far}


@balance(
    statement="With each step away from balance the performance declines",
    source="Sec. 6.2, Fig. 6",
    test="least loss, in C-F1, O-F1, mAP, of any step of rho away from 0",
    implies=("rho_ends",),
)
def rho_declines(seed: Seed) -> Cells:
    scores = by_rho(seed)
    up = [rho for rho in scores if rho >= 0]
    down = [rho for rho in reversed(scores) if rho <= 0]
    steps = [*pairwise(up), *pairwise(down)]
    return {f"rho {a:g} to {b:g}": scores[a] - scores[b] for a, b in steps}


@inside(
    statement="PRS's features tell the minority classes apart better than CRS's",
    source="Sec. 6.2, Feature Analysis, Fig. 7",
    test="k-nearest-neighbour accuracy on the minority's test images, PRS less CRS",
    on=(COCO, MNIST),
    metrics=("kNN accuracy",),
)
def features(seed: Seed) -> Cells:
    return seed.lead("PRS", ["CRS"], group="minority", measure="features")


def varied(rival: str, on: tuple[str, ...]) -> None:
    """Declare that PRS has a higher gradient variance, in percent."""

    @inside(
        name=f"variance_{rival.lower()}",
        statement=f"PRS keeps a higher gradient variance than {rival}",
        source="Appendix, Gradient Variance",
        test="the memory's gradient variance (geometric mean over the stream), "
        f"PRS's over {rival}'s, less 100 %",
        on=on,
        metrics=("gradient variance",),
        unit="%",
    )
    def percent_more(seed: Seed) -> Cells:
        ours = seed.score("PRS", measure="variance")
        return {"": 100 * (ours / seed.score(rival, measure="variance") - 1)}


varied("CRS", (COCO, MNIST))
varied("GSS", (COCO, MNIST))
varied("ExStream", (COCO,))


def one_label(rival: str) -> None:
    """Declare that PRS is above another with one label an image."""

    @single(
        name=f"single_{rival.lower()}",
        statement=f"With one label an image PRS is above {rival} too",
        test=f"least lead of PRS over {rival} in accuracy; whole test set",
    )
    def above_rival(seed: Seed) -> Cells:
        return seed.lead("PRS", [rival], task="all")


one_label("CRS")
one_label("GSS")


@single(
    statement="With one label an image PRS is ahead of CRS after four tasks",
    source="Appendix, Task Progression Results",
    test="least lead of PRS over CRS in accuracy; whole test set after task 4",
)
def after_four(seed: Seed) -> Cells:
    return seed.lead("PRS", ["CRS"], task="all", after=4)


def after_each_task(seed: Seed, others: tuple[str, ...]) -> Cells:
    """Return PRS's leads after each task but the first."""
    # all methods keep the same of a first task that fits into the memory
    later = seed.scores.times("PRS")[1:]
    places: dict[str, Place] = {
        f"after {time} tasks": {"after": time} for time in later
    }
    return named(places, lambda place: seed.lead("PRS", others, **place))


@times(
    statement="PRS is ahead of CRS at any point of the training",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; after each task but the first",
    implies=("above_crs",),
)
def any_time_crs(seed: Seed) -> Cells:
    return after_each_task(seed, ("CRS",))


@times(
    statement="PRS is ahead of all at any point of the training",
    test="least lead of PRS over Finetune, EWC, CRS, GSS, ExStream in C-F1, O-F1, mAP; "
    "after each task but the first",
    implies=("any_time_crs", "best"),
)
def any_time(seed: Seed) -> Cells:
    return after_each_task(seed, ALL)


@times(
    statement="PRS becomes more effective with the number of tasks",
    test="lead of PRS over CRS at the end less that after the first task, "
    "mean of C-F1, O-F1 and mAP",
    over="mean",
)
def lead_grows(seed: Seed) -> Cells:
    leads = [
        seed.score("PRS", after=time) - seed.score("CRS", after=time)
        for time in seed.scores.times("PRS")
    ]
    return {"": leads[-1] - leads[0]} if len(leads) > 1 else {}


def on_imbalanced(seed: Seed, others: tuple[str, ...], group: str) -> Cells:
    """Return the leads of PRS with rho 0.5 on the imbalanced test set."""
    place: Place = {"group": group, "test_set": "imbalanced"}
    of_prs: Place = {**place, "rho": 0.5}
    ours = seed.score("PRS", **of_prs)
    return {f"over {name}": ours - seed.score(name, **place) for name in others}


@unbalanced(
    statement="With rho 0.5 PRS is above CRS on the imbalanced test set",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; overall",
)
def imbalanced_crs(seed: Seed) -> Cells:
    return on_imbalanced(seed, ("CRS",), "overall")


@unbalanced(
    statement="With rho 0.5 PRS is above all on the imbalanced test set",
    test=f"least lead of PRS over {THREE}; overall",
    implies=("imbalanced_crs",),
)
def imbalanced(seed: Seed) -> Cells:
    return on_imbalanced(seed, RIVALS, "overall")


@unbalanced(
    statement="With rho 0.5 only CRS is ahead of PRS on the majority",
    test="least lead of PRS over GSS, ExStream in C-F1, O-F1, mAP; majority",
)
def imbalanced_majority(seed: Seed) -> Cells:
    return on_imbalanced(seed, ("GSS", "ExStream"), "majority")


@networks(
    statement="PRS is above CRS on every architecture",
    test="least lead of PRS over CRS in C-F1, O-F1, mAP; plain net, both attention nets",
    on=(COCO,),
    implies=("above_crs",),
)
def architectures_crs(seed: Seed) -> Cells:
    return named(NETWORKS, lambda place: seed.lead("PRS", ["CRS"], **place))


@networks(
    statement="PRS is above ExStream on every architecture",
    test="least lead of PRS over ExStream in C-F1, O-F1, mAP; "
    "plain net, both attention nets",
    on=(COCO,),
    implies=("above_exstream",),
)
def architectures(seed: Seed) -> Cells:
    return named(NETWORKS, lambda place: seed.lead("PRS", ["ExStream"], **place))


@networks(
    statement="PRS is above GSS with Attention Consistency",
    test="least lead of PRS over GSS in C-F1, O-F1, mAP; overall",
    on=(COCO,),
)
def architectures_gss(seed: Seed) -> Cells:
    return seed.lead("PRS", ["GSS"], **CONSISTENCY)


def plain_ahead(seed: Seed, method: str, plain: Place) -> Cells:
    """Return how far the plain network is above both attention nets."""
    ours = seed.score(method, **plain)
    return {
        f"over {name}": ours - seed.score(method, **setting)
        for name, setting in ATTENTION.items()
    }


@networks(
    statement="In one offline epoch the plain network is the best architecture",
    test="least lead of the plain network over both attention nets in C-F1, O-F1, mAP; "
    "Multitask",
)
def plain_multitask(seed: Seed) -> Cells:
    return plain_ahead(seed, "Multitask", PLAIN)


@networks(
    statement="In the online stream the plain network is the best architecture",
    test="least lead of the plain network over both attention nets in C-F1, O-F1, mAP; PRS",
    on=(COCO,),
)
def plain_online(seed: Seed) -> Cells:
    return plain_ahead(seed, "PRS", {})


def harder(seed: Seed, nets: dict[str, Place]) -> Cells:
    """Return how much lower Multitask scores on the balanced test set."""
    gaps = {}
    for name, net in nets.items():
        imbalanced: Place = {**net, "test_set": "imbalanced"}
        easy = seed.score("Multitask", **imbalanced)
        gaps[name] = easy - seed.score("Multitask", **net)
    return gaps


@networks(
    statement="After one epoch a balanced test set is harder than one as it comes, "
    "for the plain network",
    test="Multitask on the imbalanced less on the balanced test set, "
    "least of C-F1, O-F1, mAP",
)
def balanced_is_harder(seed: Seed) -> Cells:
    return harder(seed, {"plain net": PLAIN})


@networks(
    statement="After one epoch a balanced test set is harder than one as it comes, "
    "for all architectures",
    test="Multitask on the imbalanced less on the balanced test set, "
    "least of C-F1, O-F1, mAP",
    implies=("balanced_is_harder",),
)
def balanced_is_harder_for_all(seed: Seed) -> Cells:
    return harder(seed, {"plain net": PLAIN, **ATTENTION})
