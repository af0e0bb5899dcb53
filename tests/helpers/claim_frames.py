"""Scores by hand on which each claim holds, and others on which it does not."""

import pandas as pd

from prslib.report.claims import CLAIMS

RIVALS = ("CRS", "GSS", "ExStream")
BASELINES = ("Finetune", "EWC", *RIVALS)
OTHER = "other"
HALF, MORE = {"memory_size": 0.5}, {"memory_size": 1.5}
PLAIN = {"frozen_stages": OTHER}
CONSISTENCY = {"model": "Attention Consistency", "frozen_stages": OTHER}
RNN = {"model": "RNN-Attention"}


def row(value, method, **place):
    """A score of one method; `place` as columns, the rest is overall at the end."""
    usual = {"group": "overall", "measure": "score", "task": "seen", "trained_tasks": 4}
    return usual | {"method": method, "value": float(value)} | place


def leads(rivals, **place):
    """PRS at 60, its rivals at 40."""
    return [row(60, "PRS", **place), *(row(40, name, **place) for name in rivals)]


def everywhere(rivals, *places):
    return [one for place in places for one in leads(rivals, **place)]


def share(first, second):
    """The first of two, a method and a measure of its memory, has more."""
    return [row(60, first[0], measure=first[1]), row(40, second[0], measure=second[1])]


MODERATE, MINORITY = {"group": "moderate"}, {"group": "minority"}
SCHEDULES = ({}, {"schedule": "0,1,2,3"})
IMBALANCED = {"test_set": "imbalanced"}
FIRST_TASK = row(50, "PRS", trained_tasks=1)  # after which no claim compares
LATER = ({"trained_tasks": 2}, {})


def on_imbalanced(rivals, **place):
    """PRS with rho 0.5 at 60 on the imbalanced test set, its rivals at 40."""
    place = IMBALANCED | place
    others = [row(40, name, **place) for name in rivals]
    return [row(60, "PRS", rho=0.5, **place), *others]


HOLDS = {
    "crs_follows": share(("CRS", "to equal"), ("CRS", "to stream")),
    "crs_head": share(("CRS", "majority"), ("CRS", "minority")),
    "largest_fifth": [row(60, "CRS", measure="largest fifth of stream")],
    "largest_fifth_memory": share(("CRS", "largest fifth"), ("PRS", "largest fifth")),
    "rho_one": [
        row(20, "PRS", measure="to stream", rho=1.0),
        row(24, "CRS", measure="to stream"),
    ],
    "prs_balances": share(("PRS", "to stream"), ("PRS", "to equal")),
    "exstream_balances": share(("ExStream", "to stream"), ("ExStream", "to equal")),
    "gss_moderate": share(("GSS", "moderate"), ("CRS", "moderate")),
    "gss_minority": share(("PRS", "minority"), ("GSS", "minority")),
    "best": leads(BASELINES),
    "lower_bound": [
        row(20, "Finetune"),
        *(row(40, name) for name in ("EWC", *RIVALS, "PRS")),
    ],
    "ewc_frozen": [
        row(60, "EWC", frozen_stages=OTHER, pretrained_stages=OTHER),
        row(40, "EWC", pretrained_stages=OTHER),
    ],
    "upper_bound": [row(60, "Multitask"), row(40, "PRS")],
    "majority": leads(("EWC", "GSS", "ExStream"), group="majority"),
    "crs_majority": [
        row(60, "CRS", group="majority"),
        row(40, "PRS", group="majority"),
    ],
    "crs_sacrifices": everywhere(["CRS"], MODERATE, MINORITY),
    "best_on_tail": everywhere(BASELINES, MODERATE, MINORITY),
    "head_and_tail": [
        row(70, "CRS", group="majority"),
        row(20, "CRS", group="minority"),
        row(60, "PRS", group="majority"),
        row(40, "PRS", group="minority"),
    ],
    "smallest_task_crs": leads(["CRS"], task="3"),
    "smallest_task": leads(BASELINES, task="3"),
    "schedules_crs": everywhere(["CRS"], *SCHEDULES),
    "schedules": everywhere(RIVALS, *SCHEDULES),
    "memory_crs": everywhere(["CRS"], {}, HALF, MORE),
    "memory": everywhere(RIVALS, {}, HALF, MORE),
    "memory_jump": [row(60, "PRS"), row(40, "PRS", **HALF)],
    "memory_flattens": [
        row(40, "PRS", **HALF),
        row(60, "PRS"),
        row(65, "PRS", **MORE),
    ],
    "rho_ends": [
        row(60, "PRS"),
        row(40, "PRS", rho=-1.0),
        row(45, "PRS", rho=1.0),
    ],
    "rho_declines": [
        row(60, "PRS"),
        row(50, "PRS", rho=-0.5),
        row(40, "PRS", rho=-1.0),
        row(55, "PRS", rho=0.5),
        row(45, "PRS", rho=1.0),
    ],
    "features": leads(["CRS"], group="minority", measure="features"),
    "after_four": leads(["CRS"], task="all"),
    "any_time_crs": [FIRST_TASK, *everywhere(["CRS"], *LATER)],
    "any_time": [FIRST_TASK, *everywhere(BASELINES, *LATER)],
    "lead_grows": [
        row(70, "PRS", trained_tasks=1),
        row(65, "CRS", trained_tasks=1),
        row(50, "PRS"),
        row(40, "CRS"),
    ],
    "imbalanced_crs": on_imbalanced(["CRS"]),
    "imbalanced": on_imbalanced(RIVALS),
    "imbalanced_majority": on_imbalanced(["GSS", "ExStream"], group="majority"),
    "architectures_crs": everywhere(["CRS"], {}, CONSISTENCY, RNN),
    "architectures": everywhere(["ExStream"], {}, CONSISTENCY, RNN),
    "architectures_gss": leads(["GSS"], **CONSISTENCY),
    "plain_multitask": [
        row(60, "Multitask", **PLAIN),
        row(40, "Multitask", **CONSISTENCY),
        row(50, "Multitask", **RNN),
    ],
    "plain_online": [
        row(60, "PRS"),
        row(40, "PRS", **CONSISTENCY),
        row(50, "PRS", **RNN),
    ],
    "balanced_is_harder": [
        row(60, "Multitask", **PLAIN, **IMBALANCED),
        row(40, "Multitask", **PLAIN),
    ],
    "balanced_is_harder_for_all": [
        row(value, "Multitask", **net, **test_set)
        for net in (PLAIN, CONSISTENCY, RNN)
        for value, test_set in ((60, IMBALANCED), (40, {}))
    ],
}
for _rival in RIVALS:
    HOLDS[f"above_{_rival}".lower()] = leads([_rival])
    HOLDS[f"variance_{_rival}".lower()] = leads([_rival], measure="variance")
    # PRS is at 50 in both schedules, the rival at 40 and 60
    HOLDS[f"steadier_{_rival}".lower()] = [
        row(50, "PRS"),
        row(50, "PRS", schedule="0,1,2,3"),
        row(40, _rival),
        row(60, _rival, schedule="0,1,2,3"),
    ]
for _rival in ("CRS", "GSS"):
    HOLDS[f"single_{_rival}".lower()] = leads([_rival], task="all")
for _method in ("CRS", "EWC"):
    for _measure, _suffix in (("forget", ""), ("lost", "_lost")):
        HOLDS[f"tail_{_method}{_suffix}".lower()] = [
            row(60, _method, group="minority", measure=_measure),
            row(40, _method, group="majority", measure=_measure),
        ]
    # the smaller the class, the more of it is forgotten
    setting = HALF if _method == "CRS" else {}
    for _metric in ("ap", "f1"):
        for _measure in ("order", "order_lost"):
            name = _measure.replace("order", f"order_{_method}_{_metric}").lower()
            HOLDS[name] = [row(-0.6, _method, measure=_measure, **setting)]


def turned(name, rows):
    """Return the rows with high and low exchanged: those on which the claim fails."""
    if name.startswith("steadier"):
        others = {"PRS": rows[2]["method"], rows[2]["method"]: "PRS"}
        return [one | {"method": others[one["method"]]} for one in rows]
    if name.startswith("order"):
        return [one | {"value": -one["value"]} for one in rows]
    return [one | {"value": 100 - one["value"]} for one in rows]


def frame(name, rows):
    """Return rows of five seeds in all metrics of a claim."""
    seeds = [one | {"seed": seed} for one in rows for seed in range(5)]
    return pd.DataFrame(
        [one | {"metric": metric} for one in seeds for metric in CLAIMS[name].metrics]
    ).assign(standard_rho=0.0)
