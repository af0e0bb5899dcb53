"""List the claims that the paper makes in words, and the quantity that decides each."""

from collections.abc import Callable

from prslib.report import statistics
from prslib.report.observations import Claim
from prslib.report.tables import METRICS
from prslib.training.methods import METHODS

COCO, NUS = "COCOseq", "NUS-WIDEseq"
MNIST, SVHN = "Imbal-MNISTseq", "Imbal-SVHNseq"
PLAIN, ATTENTION = "ResNet101", ("Attention Consistency", "RNN-Attention")
RIVALS = ("CRS", "GSS", "ExStream")  # that the text names where it says "all the baselines"
ALL = ("Finetune", "EWC", *RIVALS)
ALIKE = 0.05  # share of the one that two may differ by and still be "identical"

# values of `where` that several claims share
AT_EVERY_TASK = {"last": (True, False)}
SCHEDULES = {"varied": ("", "schedule")}
SIZES = {"varied": ("", "memory_size"), "memory": (0.5, 1.0, 1.5)}
# a network of its own may freeze stages and have a step size of its own
ATTENTIVE = ("model", "frozen_stages,model", "learning_rate,model")
MODELS = {"varied": ("", *ATTENTIVE), "architecture": (PLAIN, *ATTENTION)}
FREEZING = ("frozen_stages,pretrained_stages", "pretrained_stages")  # of EWC, and of nothing
ACCURACY = {"metric": ("accuracy",), "task": ("all",)}
IMBALANCED = {"varied": ("test_set", "rho,test_set"), "power": ("", "0.5")}
ANY_RHO = {"varied": ("", "rho"), "method": ("PRS",), "power": None}
SHARE = {"measure": ("share",), "metric": ("memory",)}
LABELS = {"measure": ("share",), "metric": ("labels",)}
FEATURES = {"measure": ("features",), "metric": ("kNN accuracy",)}

# sources
FIGURE_5 = "Sec. 6.2, Fig. 5"
MEMORIES = "Sec. 6.2, Memory Distribution"
INTRA_TASK = "Sec. 6.2, Intra-task Imbalance"
PERMUTED = "Sec. 6.2, Table 2; Appendix, permuted schedules"
PROGRESSION = "Appendix, Task Progression Results"
IMBALANCED_TEST = "Appendix, Imbalanced test-set"
NETWORKS = "Appendix, Base Architectures"

# what claims have in common; of `leads`, beyond the overall scores of the standard setting
ON_THE_TAIL = {
    "source": INTRA_TASK,
    "place": "moderate and minority",
    "columns": ("method", "group", "metric"),
    "where": {"group": ("moderate", "minority")},
}
ON_THE_SMALLEST_TASK = {
    "source": "Sec. 6.2, Fig. 4",
    "place": "task 3 at the end",
    "on": (NUS,),
    "where": {"task": ("3",)},
}
IN_EVERY_SCHEDULE = {
    "source": PERMUTED,
    "place": "each schedule",
    "columns": ("method", "schedule", "metric"),
    "where": SCHEDULES,
    "several": "schedule",
}
AT_EVERY_SIZE = {
    "source": "Sec. 6.2, Table 2; Appendix, memory sizes",
    "place": "half, whole and one and a half times the memory",
    "columns": ("method", "memory", "metric"),
    "where": SIZES,
}
AT_ANY_TIME = {
    "source": PROGRESSION,
    "place": "after each task but the first, which may fit into the memory",
    "effect": lambda *methods: statistics.after_the_first(statistics.beats(*methods)),
    "columns": ("method", "trained_tasks", "metric"),
    "where": AT_EVERY_TASK,
}
ON_EVERY_NETWORK = {
    "source": NETWORKS,
    "place": "plain net and both attention nets",
    "on": (COCO,),
    "columns": ("method", "architecture", "metric"),
    "where": MODELS,
}
WITH_ONE_LABEL = {
    "source": "Appendix, Single-Labeled Classification",
    "place": "whole test set at the end",
    "on": (MNIST, SVHN),
    "where": ACCURACY,
}
AFTER_FOUR_TASKS = WITH_ONE_LABEL | {
    "source": PROGRESSION,
    "place": "whole test set after task 4",
    "where": {**ACCURACY, "last": (False,), "trained_tasks": (4,)},
}
ON_UNBALANCED_IMAGES = {"source": IMBALANCED_TEST, "on": (COCO,), "where": IMBALANCED}
OVER_RHO = {"on": (COCO,), "columns": ("rho", "metric"), "where": ANY_RHO, "several": "rho"}
OF_MEMORY = {"on": (COCO,), "unit": "points of memory"}


def leads(
    statement: str,
    *others: str,
    leader: str = "PRS",
    source: str = "Sec. 6.2, Table 1",
    place: str = "overall",
    effect: Callable = statistics.beats,
    **fields,
) -> Claim:
    """Return the claim that one method is above others in every cell that counts."""
    metrics = ", ".join(fields.get("where", {}).get("metric", METRICS))
    test = f"least lead of {leader} over {', '.join(others)} in any of {metrics}; {place}"
    where = {"method": (leader, *others)} | fields.pop("where", {})
    return Claim(statement, source, test, effect(leader, *others), where=where, **fields)


def forgets_the_tail(method: str) -> Claim:
    """Return the claim that a method forgets the rare classes more (Figure 1)."""
    return Claim(
        f"{method} forgets the minority more than the majority",
        "Sec. 2, Fig. 1; Table 1",
        "forgetting of the minority less that of the majority, mean of C-F1, O-F1 and mAP",
        statistics.gains("minority", "majority"),
        columns=("group", "metric"),
        where={"method": (method,), "measure": ("forget",), "group": ("majority", "minority")},
    )


def forgets_the_small(method: str, metric: str) -> Claim:
    """Return the claim that a method forgets small classes more, task by task (Figure 1)."""
    memory = {"memory": (0.5,), "varied": ("memory_size",)} if METHODS[method].sampler else {}
    return Claim(
        f"{method} forgets small classes more than large ones, in {metric}",
        "Sec. 2, Fig. 1",
        f"rank correlation of a class's size with its forgetting of {metric}, mean over tasks, "
        "sign reversed; half the memory",
        statistics.falls(),
        on=(COCO,),
        columns=("metric",),
        where={"method": (method,), "measure": ("order",), "metric": (metric,), **memory},
        unit="of a correlation",
    )


def steadier_than(method: str) -> Claim:
    """Return the claim that PRS depends less on the schedule than another method (Table 2)."""
    return Claim(
        f"PRS varies less from schedule to schedule than {method}",
        PERMUTED,
        f"variance over schedules of {method} less that of PRS, the seeds' noise left out of ours; "
        "mean of C-F1, O-F1 and mAP, overall",
        statistics.steadier("PRS", method),
        columns=("method", "schedule", "metric"),
        where={"method": ("PRS", method), **SCHEDULES},
        several="schedule",
        unit="square points",
    )


def nearer_to(
    statement: str, method: str, aim: str, other: str, source: str = FIGURE_5, **fields
) -> Claim:
    """Return the claim that a memory is nearer to one mix than to another (Figure 5)."""
    return Claim(
        statement,
        source,
        f"total variation distance of {method}'s memory {other} less that {aim}",
        statistics.beats(other, aim),
        columns=("metric", "method"),
        where={"method": (method,), "measure": ("share",), "metric": (aim, other)},
        **OF_MEMORY | fields,
    )


def more_varied_than(method: str, on: tuple = (COCO, MNIST)) -> Claim:
    """Return the claim that PRS has a higher gradient variance than another method."""
    metric = "gradient variance"
    return Claim(
        f"PRS keeps a higher {metric} than {method}",
        "Appendix, Gradient Variance",
        f"geometric mean over the stream of the memory's {metric}, PRS over {method}, less 100 %",
        statistics.times("PRS", method),
        on=on,
        where={"method": ("PRS", method), "measure": ("variance",), "metric": (metric,)},
        unit="%",
    )


def harder_when_balanced(networks: str, *architectures: str, place: str = "") -> Claim:
    """Return the claim that Multitask scores lower on the balanced test set."""
    varied = ("frozen_stages", *ATTENTIVE)  # the table freezes a stage of the plain network
    return Claim(
        f"A balanced test set is harder than one as it comes, for {networks}",
        NETWORKS,
        "Multitask on the imbalanced less on the balanced test set, least of C-F1, O-F1 and mAP"
        f"{place}",
        statistics.beats("imbalanced", "balanced"),
        columns=("test_set", "architecture", "metric"),
        where={
            "method": ("Multitask",),
            "architecture": architectures,
            "test_set": ("balanced", "imbalanced"),
            "varied": (*varied, *(f"{name},test_set" for name in varied)),
        },
    )


# a claim, and the question that it and those after it in `CLAIMS` answer
QUESTIONS = {
    "tail_crs": "Are the rare classes forgotten first?",
    "crs_follows": "What is in the memory?",
    "best": "Who has the best scores?",
    "majority": "Who gains, and who pays?",
    "steadier_crs": "Does the order of the tasks matter?",
    "memory_crs": "Does the size of the memory matter?",
    "rho_best": "Is balance best?",
    "features": "What do features and gradients show?",
    "single_crs": "Does it hold with one label an image?",
    "any_time_crs": "Does it hold at any time?",
    "imbalanced_crs": "Does it hold on unbalanced test images?",
    "architectures_crs": "Does it hold with other networks?",
}
CLAIMS: dict[str, Claim] = {
    "tail_crs": forgets_the_tail("CRS"),
    "tail_ewc": forgets_the_tail("EWC"),
    "order_crs_ap": forgets_the_small("CRS", "AP"),
    "order_crs_f1": forgets_the_small("CRS", "F1"),
    "order_ewc_ap": forgets_the_small("EWC", "AP"),
    "order_ewc_f1": forgets_the_small("EWC", "F1"),
    "crs_follows": nearer_to(
        "CRS's memory is as long-tailed as the stream",
        *("CRS", "to stream", "to equal"),
        source="Sec. 3.2; Sec. 6.2, Fig. 5",
        on=(COCO, NUS),
    ),
    "crs_head": Claim(
        "CRS fills its memory with the majority",
        FIGURE_5,
        "share of CRS's memory that the majority has, less that of the minority",
        statistics.gains("majority", "minority"),
        columns=("group", "metric"),
        where={"method": ("CRS",), "group": ("majority", "minority"), **SHARE},
        **OF_MEMORY,
    ),
    "rho_one": Claim(
        "With rho 1 PRS is identical to CRS",
        "Sec. 3.4",
        f"labels a held sample: the difference is less than {ALIKE:.0%} of CRS's",
        statistics.alike("PRS", "CRS", ALIKE),
        on=(COCO,),
        where={"method": ("PRS", "CRS"), "varied": ("", "rho"), "power": ("", "1"), **LABELS},
        unit="labels",
    ),
    "prs_balances": nearer_to(
        "PRS's memory is balanced without task information", "PRS", "to equal", "to stream"
    ),
    "exstream_balances": nearer_to(
        "ExStream's memory is balanced, with the classes known in advance",
        *("ExStream", "to equal", "to stream"),
    ),
    "gss_moderate": Claim(
        "GSS keeps more of the moderate classes than CRS",
        FIGURE_5,
        "share of the memory that the moderate classes have, GSS less CRS",
        statistics.gains("GSS", "CRS"),
        where={"method": ("GSS", "CRS"), "group": ("moderate",), **SHARE},
        **OF_MEMORY,
    ),
    "gss_minority": Claim(
        "GSS keeps too little of the minority, PRS enough",
        FIGURE_5,
        "share of the memory that the minority has, PRS less GSS",
        statistics.gains("PRS", "GSS"),
        where={"method": ("PRS", "GSS"), "group": ("minority",), **SHARE},
        **OF_MEMORY,
    ),
    "best": leads("PRS is best of all", *ALL, source="Table 1"),
    "above_crs": leads("PRS outperforms CRS", "CRS"),
    "above_gss": leads("PRS outperforms GSS", "GSS"),
    "above_exstream": leads("PRS outperforms ExStream, which knows the classes", "ExStream"),
    "lower_bound": Claim(
        "Finetune is the lower bound",
        "Sec. 6.1, Baselines",
        "least lead of any other method over Finetune in any of C-F1, O-F1, mAP; overall",
        statistics.above_floor("Finetune", *ALL[1:], "PRS"),
        where={"method": (*ALL, "PRS")},
    ),
    "ewc_frozen": Claim(
        "EWC works poorly unless the network is frozen up to its last layer",
        "Sec. 6.1, Baselines",
        "least lead of EWC with only the last layer in training over EWC with all layers in "
        "training, in any of C-F1, O-F1, mAP; overall; one strength of the penalty",
        statistics.beats(*FREEZING),
        columns=("varied", "metric"),
        on=(COCO,),
        where={"method": ("EWC",), "varied": FREEZING},
    ),
    "upper_bound": leads(
        "Multitask is the upper bound",
        "PRS",
        leader="Multitask",
        source="Sec. 6.1, Baselines; Table 1",
    ),
    "majority": Claim(
        "PRS is at least the runner-up on the majority",
        INTRA_TASK,
        "least lead of PRS over the second best of EWC, CRS, GSS, ExStream; majority",
        statistics.runner_up("PRS", *ALL[1:]),
        where={"method": (*ALL[1:], "PRS"), "group": ("majority",)},
    ),
    "crs_majority": Claim(
        "CRS may be better than PRS on the majority",
        MEMORIES,
        "lead of CRS over PRS, mean of C-F1, O-F1 and mAP; majority",
        statistics.gains("CRS", "PRS"),
        where={"method": ("CRS", "PRS"), "group": ("majority",)},
    ),
    "crs_majority_c_f1": Claim(
        "CRS may be better than PRS on the majority, in C-F1",
        f"{MEMORIES}; Table 1",
        "lead of CRS over PRS in C-F1; majority",
        statistics.gains("CRS", "PRS"),
        where={"method": ("CRS", "PRS"), "group": ("majority",), "metric": ("C-F1",)},
    ),
    "crs_sacrifices": leads(
        "CRS pays for it on the moderate and minority classes",
        "CRS",
        **ON_THE_TAIL | {"source": MEMORIES},
    ),
    "best_on_tail": leads(
        "PRS is best on the moderate and the minority classes", *ALL, **ON_THE_TAIL
    ),
    "head_and_tail": Claim(
        "PRS keeps the knowledge of head and tail balanced",
        "Abstract; Sec. 7",
        "majority less minority under CRS, less the same under PRS, mean of C-F1, O-F1 and mAP",
        statistics.gap_closes("PRS", "CRS", "majority", "minority"),
        columns=("method", "group", "metric"),
        where={"method": ("PRS", "CRS"), "group": ("majority", "minority")},
    ),
    "smallest_task_crs": leads(
        "PRS is better than CRS on the smallest task", "CRS", **ON_THE_SMALLEST_TASK
    ),
    "smallest_task": leads(
        "PRS is the best of all on the smallest task", *ALL, **ON_THE_SMALLEST_TASK
    ),
    "steadier_crs": steadier_than("CRS"),
    "steadier_gss": steadier_than("GSS"),
    "steadier_exstream": steadier_than("ExStream"),
    "schedules_crs": leads("PRS outperforms CRS in every schedule", "CRS", **IN_EVERY_SCHEDULE),
    "schedules": leads("PRS outperforms all in every schedule", *RIVALS, **IN_EVERY_SCHEDULE),
    "memory_crs": leads("PRS outperforms CRS with every size of memory", "CRS", **AT_EVERY_SIZE),
    "memory": leads("PRS outperforms all with every size of memory", *RIVALS, **AT_EVERY_SIZE),
    "memory_flattens": Claim(
        "More memory helps less and less",
        "Appendix, Different Memory Sizes",
        "gain of PRS from half to the whole memory less that from there to one and a half, mean "
        "of C-F1, O-F1 and mAP; overall",
        statistics.flattens(0.5, 1.0, 1.5),
        on=(NUS,),
        columns=("memory", "metric"),
        where={"method": ("PRS",), **SIZES},
    ),
    "rho_best": Claim(
        "rho near balance, within [-0.2, 0.2], is best",
        "Sec. 6.1; Sec. 6.2, Fig. 6",
        "least lead, in C-F1, O-F1, mAP, of the best rho within [-0.2, 0.2] on the best outside",
        statistics.near_balance(),
        **OVER_RHO,
    ),
    "rho_declines": Claim(
        "Away from balance the performance declines in all metrics",
        "Sec. 6.2, Fig. 6",
        "least loss, in C-F1, O-F1, mAP, of any step of rho away from 0",
        statistics.declines(),
        **OVER_RHO,
    ),
    "features": Claim(
        "PRS's features tell the minority classes apart better than CRS's",
        "Sec. 6.2, Feature Analysis, Fig. 7",
        "k-nearest-neighbour accuracy on the minority's test images, PRS less CRS",
        statistics.beats("PRS", "CRS"),
        on=(COCO, MNIST),
        where={"method": ("PRS", "CRS"), "group": ("minority",), **FEATURES},
    ),
    "variance_crs": more_varied_than("CRS"),
    "variance_gss": more_varied_than("GSS"),
    "variance_exstream": more_varied_than("ExStream", on=(COCO,)),
    "single_crs": leads("With one label an image PRS is above CRS too", "CRS", **WITH_ONE_LABEL),
    "single_gss": leads("With one label an image PRS is above GSS too", "GSS", **WITH_ONE_LABEL),
    "after_four": leads(
        "With one label an image PRS is ahead of CRS after four tasks", "CRS", **AFTER_FOUR_TASKS
    ),
    "any_time_crs": leads("PRS is ahead of CRS at any point of the training", "CRS", **AT_ANY_TIME),
    "any_time": leads("PRS is ahead of all at any point of the training", *ALL, **AT_ANY_TIME),
    "lead_grows": Claim(
        "PRS becomes more effective with the number of tasks",
        PROGRESSION,
        "lead of PRS over CRS at the end less that after the first task, mean of C-F1, O-F1, mAP",
        statistics.lead_grows("PRS", "CRS"),
        columns=("method", "trained_tasks", "metric"),
        where={"method": ("PRS", "CRS"), **AT_EVERY_TASK},
    ),
    "imbalanced_crs": leads(
        "With rho 0.5 PRS is above CRS on the imbalanced test set", "CRS", **ON_UNBALANCED_IMAGES
    ),
    "imbalanced_o_f1": leads(
        "With rho 0.5 PRS is above CRS on the imbalanced test set, in O-F1",
        "CRS",
        **ON_UNBALANCED_IMAGES | {"where": IMBALANCED | {"metric": ("O-F1",)}},
    ),
    "imbalanced": leads(
        "With rho 0.5 PRS is above all on the imbalanced test set", *RIVALS, **ON_UNBALANCED_IMAGES
    ),
    "imbalanced_majority": Claim(
        "With rho 0.5 PRS is at least the runner-up on the majority",
        IMBALANCED_TEST,
        "least lead of PRS over the second best of CRS, GSS, ExStream; majority",
        statistics.runner_up("PRS", *RIVALS),
        on=(COCO,),
        where={"method": ("PRS", *RIVALS), "group": ("majority",), **IMBALANCED},
    ),
    "architectures_crs": leads("PRS is above CRS on every architecture", "CRS", **ON_EVERY_NETWORK),
    "architectures": leads(
        "PRS is above ExStream on every architecture", "ExStream", **ON_EVERY_NETWORK
    ),
    "architectures_gss": leads(
        "PRS is above GSS with Attention Consistency",
        "GSS",
        source=NETWORKS,
        on=(COCO,),
        where={"architecture": ATTENTION[:1], "varied": ATTENTIVE},
    ),
    "plain_multitask": Claim(
        "In one offline epoch the plain network is the best architecture",
        NETWORKS,
        "least lead of the plain network over both attention nets in C-F1, O-F1, mAP; Multitask",
        statistics.beats(PLAIN, *ATTENTION),
        columns=("architecture", "metric"),
        where={**MODELS, "method": ("Multitask",), "varied": ("frozen_stages", *ATTENTIVE)},
    ),
    "plain_online": Claim(
        "In the online stream the plain network is the best architecture",
        NETWORKS,
        "least lead of the plain network over both attention nets in C-F1, O-F1, mAP; PRS",
        statistics.beats(PLAIN, *ATTENTION),
        on=(COCO,),
        columns=("architecture", "metric"),
        where={"method": ("PRS",), **MODELS},
    ),
    "balanced_is_harder": harder_when_balanced("the plain network", PLAIN),
    "balanced_is_harder_for_all": harder_when_balanced(
        "all architectures", PLAIN, *ATTENTION, place="; plain net and both attention nets"
    ),
}
