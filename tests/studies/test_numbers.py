"""Numbers of studies and benchmarks that pages tell by hand are those of the tables."""

import math
from pathlib import Path

import pandas as pd
from told import IN_WORDS, ROOT, contains, fill, table_of, the_only

from prslib.previews import FEW
from prslib.report import measures
from prslib.report.answers import STREAMS
from prslib.statistics import SMALL

SENTENCES = Path(__file__).with_name("numbers.md")
MULTITASK_RA = (
    "architecture == 'RNN-Attention' and dataset == 'COCOseq' and epochs == 1 and "
    "method == 'Multitask' and test_set == 'balanced' and "
    "group == 'overall' and metric == 'C-F1'"
)
PAPERS_RESULT = (  # with the standard memory, at the end
    "table == 'main' and dataset == 'COCOseq' and trained_tasks == 4 "
    "and group == 'overall' and measure == 'score'"
)


def ends(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def of_seeds():
    """Return numbers of seeds, and what more or other seeds change."""
    table = table_of("more_seeds")
    medians = table.groupby(["dataset", "test_set"])["share_of_images"].median()
    images = medians.round().astype(int)
    of_coco = images["cocoseq-mini"]
    assert of_coco["open"] < 50 <= of_coco["imbalanced"]
    on_coco = table[table["dataset"] == "cocoseq-mini"].set_index("test_set")
    mean_ap = on_coco.query("group == 'overall' and metric == 'mAP'")
    others = table_of("other_seeds")
    assert others.loc[others["firm"], "same_sign"].all()
    significant = others.query("low > 0 or high < 0")
    turned = significant.loc[~significant["same_sign"], "dataset"]
    assert set(turned) == {"mdiseq"}
    gaps = table_of("when_it_pays_minus_crs", "seeds")
    shares = table_of("memory_distribution_distance", "seeds")
    of_mini = shares.query("dataset == 'cocoseq-mini'")
    architectures = table_of("architectures_prs_minus_crs", "seeds")
    return {
        "images": images,
        "seeds": the_only(table["seeds"]),
        "errors": mean_ap.to_dict("index"),
        "narrower": ends(on_coco.loc["open", "narrower"]),
        "kept": len(significant) - len(turned),
        "significant": len(significant),
        "turned": len(turned),
        "gap_seeds": the_only(gaps["seeds"]),
        "streams": gaps["dataset"].nunique(),
        "memory_seeds": of_mini["seed"].nunique(),
        "cut_seeds": the_only(table_of("when_it_pays_cuts", "seeds")["seeds"]),
        "architecture_seeds": the_only(architectures["seeds"]),
    }


def of_studies():
    """Return what studies of the head and of ExStream found, and counts of results."""
    status = table_of("ledger_cells", "seeds")["status"]
    run = (status == "run").sum()
    assert 0.6 < run / len(status) < 0.7
    sizes = table_of("schedules_and_memory_sizes", "seeds")
    sizes = sizes[(sizes["group"] == "overall") & (sizes["measure"] == "score")]
    sizes = sizes[sizes["test_set"] == "balanced"]
    keys = ["dataset", "metric", "memory_size", "method"]
    means = sizes.set_index(keys)["mean"].unstack("method")
    few = means.loc["cocoseq-mini"].xs(60, level="memory_size")
    assert set(few.loc[["mAP", "C-F1"]].idxmax(axis=1)) == {"ExStream"}
    text = means.loc["reutersseq"]
    assert (text["PRS"] > text["ExStream"]).all()
    head = table_of("head_choice").query("optimizer == 'adam'")
    head = head.set_index("learning_rate").drop(columns="optimizer").round(1)
    assert head.loc[0.002, "mean"] == head["mean"].max()
    merging = table_of("exstream_merging").query("metric == 'mAP'")
    merging = merging.set_index("method").round(1)
    return {
        "run": run,
        "cells": len(status),
        "collections": table_of("more_streams")["dataset"].nunique() + 1,
        "voters": head.shape[1] - 1,
        "vote": head.loc[0.002],
        "used": head.loc[0.003],
        "merging": merging.to_dict("index"),
        "below_prs": -merging.loc["Unmerged", "difference"],
    }


def on_a_card():
    """Return numbers about steps and whole runs on a GPU."""
    of_h200 = table_of("step_h200", "bench")
    step = of_h200.pivot(index="part", columns="precision", values="ms")
    in_graph = step.loc["step", "bf16"]
    fetch, place = step.loc[["fetch", "sampler"], "any"]
    assert 0.005 < (fetch + place) / in_graph < 0.01
    of_h100 = table_of("step_h100", "bench").query("precision == 'bf16'")
    step_h100 = of_h100.set_index("part").loc["step", "ms"]
    kernels = table_of("kernels_h100", "bench").set_index("kernels")["ms"]
    others = kernels.drop("convolutions, matrix products")
    assert others.sum() / step_h100 > 0.5
    card = table_of("card_h100", "bench").set_index("kind")
    of_other = table_of("card_h200", "bench").set_index("kind")
    near = table_of("agreement_h100", "bench")
    prs, crs = table_of("drawn_images_h200", "bench").to_dict("records")
    return {
        "step": step,
        "compiled_saves": in_graph - step.loc["compiled", "bf16"],
        "step_h100": step_h100,
        "kernels": kernels,
        "card": card.to_dict("index"),
        "tflops_h200": of_other.loc["PRS", "tflops"],
        "slow_tflops": ends(card.loc[["EWC", "ER-ACE", "DER++", "GSS"], "tflops"]),
        "methods_on_both": len(near),
        "nine": len(near) - 2,
        "agreement_seeds": the_only(near["runs"]),
        "gap_of_run": near["largest"].max(),
        "gap_of_mean": near["mean_difference"].abs().max(),
        "spread": near["sd_of_seeds"].agg(["min", "max"]),
        "prs": prs,
        "crs": crs,
        "gss_minutes": prs["steps"] * card.loc["GSS", "ms"] / 60000,
        "images_gb": prs["images"] * 256 * 256 * 3 / 1e9,
    }


def on_a_cpu():
    """Return how long runs and steps take beside plain ones, and Mammoth's accuracies."""
    whole = table_of("whole_cpu", "bench")
    whole = whole.pivot(index="dataset", columns="contestant", values="ratio")
    losses = table_of("step_losses", "bench")
    losses = losses.pivot(index="contestant", columns="plain", values="times_plain")
    plain = losses["multilabel_soft_margin"].drop(["20 replayed", "DER++", "ER-ACE"])
    assert max(plain.max(), losses["cross_entropy"].max()) < 1.15
    table = table_of("samplers", "bench")
    times = table.set_index(["contestant", "classes", "batch"])["us"].sort_index()
    of_reservoir = (times["CRS", 70] / times["Mammoth reservoir", 70]).round(1)
    of_cuter = times["PRS", 70] / times["CUTER's PRS", 70]
    buffers = times[["Mammoth balanced", "CapyMOA balanced"]]
    of_cbrs = buffers / times["CBRS", 70].rename_axis("batch")
    assert (times["PRS", 1000] / times["PRS", 70]).between(3, 4).all()
    slower = [
        times[name, size] / times[name, 70]
        for name in ("CRS", "CBRS")
        for size in (80, 1000)
    ]
    slower = pd.concat(slower)
    mammoth = table_of("mammoth").fillna(0.1)
    assert 1e-6 < mammoth["largest_loss_gap"].max() < 2e-6
    mammoth["kind"] = mammoth["method"] + ", alpha " + mammoth["alpha"].astype(str)
    accuracies = {
        library: mammoth.groupby("kind")[library].agg(
            lambda values: f"{values.mean():.1f} ± {values.std():.1f}"
        )
        for library in ("mammoth", "prslib")
    }
    return accuracies | {
        "whole": whole.round(2),
        "losses": losses,
        "mammoth_seeds": mammoth.groupby("kind")["seed"].nunique().max(),
        "of_reservoir": (100 * of_reservoir).astype(int),
        "of_cuter": 100 * of_cuter,
        "of_cbrs": int(of_cbrs.min()),
        "slots": table.groupby("classes")["memory"].max(),
        "large": ends(times["PRS", 80] / times["PRS", 70]),
        "slower": f"{slower.min():.1f} to {slower.max():.0f}",
    }


def published():
    """Return numbers of the paper, and how near our runs of MNIST come to them."""
    tables = table_of("tables", ROOT / "prslib/published")
    final = tables.query(PAPERS_RESULT).set_index(["method", "metric"])["value"]
    assert round((final["PRS"] - final["CRS"]).min() / 2) == SMALL
    first = tables.query("table == 'mnist' and trained_tasks == 1")
    orders = table_of("single_label_imbal-mnistseq_nearest", "paper")
    distances = measures.distances(orders[orders["look"] == "third"])
    near = distances[distances["largest"] <= 5]
    assert near["schedule"].str.startswith("1+2").all()
    present = table_of("single_label_imbal-mnistseq", "paper").query(
        "method == 'PRS' and trained_tasks == 5"
    )
    present = present[present["schedule"] == distances["schedule"].iloc[0]]
    sizes = table_of("when_it_pays_streams", "seeds").set_index("dataset")
    small = sizes.loc[list(STREAMS), "small"]
    return {
        "small": SMALL,
        "few": 100 * FEW,
        "fewest_small": 100 * small.min(),  # which streams have
        "memory_sizes": sorted(
            tables.query("table == 'coco_memory'")["memory_size"].unique()
        ),
        "offline": tables.query(MULTITASK_RA)
        .drop_duplicates("table")["value"]
        .tolist(),
        "first_task": first.set_index("method")["value"]["Finetune"],
        # {1, 2} or {1, 7} first, then four pairs in any order
        "possible": 2 * math.factorial(8) // 2**4,
        "near": IN_WORDS[len(near)],
        "fitting": orders[orders["look"] == "second"]["schedule"].nunique(),
        "prs_below": (present["published"] - present["value"]).mean(),
    }


def coverage():
    """Return how many intervals hold the true difference."""
    held = table_of("interval_coverage").set_index(["dataset", "images"])
    of_coco = held.loc["cocoseq-mini"]
    alike, both, further = sorted(set(of_coco.index))
    few = of_coco.loc[alike].set_index(["group", "metric"])
    odd = [("minority", "C-F1"), ("minority", "O-F1")]
    more = of_coco.loc[both].query("group == 'minority'").set_index("metric")
    return {
        "alike": alike,
        "both": both,
        "further": further,
        "on_reuters": ends(held.loc["reutersseq", "covered"]),
        "on_both": ends(of_coco.loc[both, "covered"]),
        "on_open": ends(of_coco.loc[further, "covered"]),
        "on_alike": ends(few["covered"].drop(odd)),
        "odd": ends(few.loc[odd, "covered"]),
        "none_found": few.loc[odd[0], "both_zero"],
        "minority": more["covered"],
    }


def ages():
    """Return shares of memories from the quarters of tasks, by data set and method."""
    profiles = "seeds", "paper"
    table = pd.concat([table_of("memory_distribution_age", each) for each in profiles])
    return {
        "age": {
            name: rows.pivot_table("share", "quarter", "method").to_dict()
            for name, rows in table.groupby("dataset")
        }
    }


def count_claims():
    """Return the number of claims that the correction of verdicts counts, by data set."""
    claims = table_of("ledger_claims", "seeds").query("kind == 'primary'")
    counts = claims.dropna(subset="p").groupby("dataset").size()
    assert counts["mdiseq"] == counts["clipartseq"]
    return {"claims": counts}


def sentences():
    """Return pages and a sentence of each."""
    values = of_seeds() | of_studies() | on_a_card() | on_a_cpu()
    return fill(SENTENCES, values | published() | coverage() | count_claims() | ages())


def test_pages_say_what_the_tables_say():
    assert [pair for pair in sentences() if not contains(*pair)] == []


def test_no_stream_is_clearly_against_a_row_of_the_verdict():
    ranges = table_of("when_it_pays_ranges", "seeds").query("group == 'overall'")
    gains = ranges[
        (ranges["method"] == "CBRS") & ranges["metric"].isin(["mAP", "C-F1"])
    ]
    assert len(gains) == 4 and (gains["streams"] == 4).all()
    assert (gains["below"] == 0).all() and (gains["mean"] > 0).all()
    losses = ranges.query("test_set == 'imbalanced' and metric == 'O-F1'")
    assert len(losses) == 4 and (losses["above"] == 0).all()


def test_prs_and_ocdm_gain_most_on_the_rare_classes_and_lose_more_than_cbrs():
    ranges = table_of("when_it_pays_ranges", "seeds").set_index("method")
    rare = ranges.query("group == 'minority' and metric == 'C-F1'")
    for _, means in rare.groupby("test_set")["mean"]:
        assert set(means.nlargest(2).index) == {"PRS", "OCDM"}
    gaps = table_of("main_results_prs_minus_others", "seeds").query("than == 'CBRS'")
    o_f1 = gaps.query("test_set == 'imbalanced' and metric == 'O-F1'")
    assert len(o_f1) == 4 and (o_f1["difference"] < 0).all()
