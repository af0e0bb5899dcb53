"""Numbers of studies that pages tell by hand are those of the committed tables."""

import pandas as pd
import pytest

from prslib import load_dataset
from prslib.paths import project_root

ROOT = project_root()
METHODS, GPU = "docs/methods.md", "docs/gpu_and_cluster.md"
REAL_COCO, REUTERS = "docs/real_coco.md", "docs/reuters.md"
EXSTREAM = "docs/samplers/exstream.md"
WHAT_HOLDS = "docs/what_holds.md"
SAMPLERS = "docs/samplers/index.md"


def table_of(name, folder="studies"):
    return pd.read_csv(ROOT / "figures" / folder / f"{name}.csv")


def ends(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def sentences():
    """Yield pages and what each says."""
    table = table_of("interval_coverage")
    reuters = table.loc[table["dataset"] == "reutersseq", "covered"]
    yield REUTERS, f"Of 100 intervals of 95 %, {ends(reuters)} hold the true difference"
    table = table[table["dataset"] == "cocoseq-mini"]
    rare_f1 = (table["group"] == "minority") & (table["metric"] != "mAP")
    few = table["images"] == 323
    held = {images: rows["covered"] for images, rows in table.groupby("images")}
    yield REAL_COCO, f"{ends(held[3199])} hold it on 3,199 open images"
    yield REAL_COCO, f"and {ends(held[816])} on 816 images"
    usual, rare = table[few & ~rare_f1], table[few & rare_f1]
    yield REAL_COCO, f"On 323 images {ends(usual['covered'])} hold it, but"
    yield REAL_COCO, f"but only {ends(rare['covered'])} in minority C-F1 and O-F1"
    yield REAL_COCO, f"On {rare['both_zero'].iloc[0]:.0f} of 100 such sets neither"
    below = table[~few & (table["covered"] < 90)].set_index(["group", "metric"])
    assert set(below["images"]) == {816}
    values = below["covered"].map("{:.0f}".format)
    (c_f1, o_f1) = values["minority", "C-F1"], values["minority", "O-F1"]
    yield REAL_COCO, f"On 816 images minority C-F1 ({c_f1}) and O-F1 ({o_f1}) are"
    assert len(below) == 2

    index = ["test_set", "group", "metric"]
    table = table_of("more_seeds")
    medians = table.groupby(["dataset", "test_set"])["share_of_images"].median()
    assert medians["cocoseq-mini", "open"] < 50  # twenty seeds
    share = medians["reutersseq", "imbalanced"]  # ten
    yield REAL_COCO, f"the images' share is {share:.0f} % in the median"
    table = table.query("dataset == 'cocoseq-mini'")
    table = table.set_index(index).sort_index()
    errors = table[["error_of_seeds", "error_of_images"]]
    seeds, images = errors.loc["both", "overall", "mAP"]
    error = f"a standard error of {seeds:.1f} points and the images one of"
    yield REAL_COCO, f"{error} {images:.1f}."
    seeds, images = errors.loc["open", "overall", "mAP"]
    yield (
        REAL_COCO,
        f"On `open` the seeds cause {seeds:.1f} and the images {images:.1f}",
    )
    shares = ends(table.loc["open", "share_of_images"])
    yield REAL_COCO, f"share of the variance is {shares} %"
    smaller = ends(table.loc["open", "narrower"])
    yield REAL_COCO, f"the standard error {smaller} % smaller"

    status = pd.read_csv(ROOT / "figures/seeds/ledger_cells.csv")["status"]
    run = (status == "run").sum()
    beside = "have one of ours beside them"
    yield WHAT_HOLDS, f"Of the paper's {len(status)} numbers {run} {beside}"
    table = table_of("undecided_rows")
    alone = (table["alone"] != "undecided").sum()
    rows = f"Of the {len(table)} undecided rows on real data {alone} are clear by"
    yield WHAT_HOLDS, rows
    yield WHAT_HOLDS, f"More seeds cannot decide {(~table['clear']).sum()}: the chance"
    is_larger = table["effect"].abs() > table["half_endless"]
    assert (table["clear"] == is_larger).all()
    claims = pd.read_csv(ROOT / "figures/seeds/ledger_claims.csv")
    claims = claims[(claims["verdict"] == "undecided") & (claims["data"] != "stand-in")]
    keys = ["claim", "dataset"]
    assert sorted(table[keys].to_numpy().tolist()) == sorted(
        claims[keys].to_numpy().tolist()
    )

    starts = table_of("when_it_pays_pays_from", "seeds")
    start = starts.loc[starts["method"] == "PRS", "from"].min()
    yield SAMPLERS, f"We call it large from {start:.0f}:1 on"
    yield "README.md", f"large imbalance ({start:.0f}:1 or more)"
    sizes = table_of("schedules_and_memory_sizes", "seeds")
    sizes = sizes[(sizes["group"] == "majority") & (sizes["measure"] == "score")]
    keys = ["dataset", "memory_size", "metric", "method"]
    means = sizes.set_index(keys)["mean"].unstack("method")
    ahead = means["ExStream"] > means["CRS"]
    assert list(means.index[ahead]) == [
        ("cocoseq-mini", slots, "mAP") for slots in (60, 120)
    ]
    yield SAMPLERS, "higher mAP on them with 60 or 120 slots, but a lower F1"
    counts = [
        load_dataset(f"imbal-{name}digits").class_freq for name in ("", "colour-")
    ]
    for freq in counts:
        assert round(freq.max() / freq.min(), -1) == 40
        yield "README.md", "at 40:1 PRS with $\\rho = 0$ is ahead of CRS"

    table = table_of("precision_recall_table", "seeds").query("group == 'overall'")
    table = table.pivot(index=["dataset", "method"], columns="metric", values="mean")
    samplers = ["CRS", "GSS", "ExStream", "PRS", "CBRS", "OCDM"]
    of_text = table.loc["reutersseq"].loc[samplers]
    of_images = table.loc["cocoseq-mini"].loc[samplers]
    assert of_text["O-P"].idxmax() == "CRS"
    assert of_images["O-P"].idxmax() == "ExStream"
    assert of_images.loc["ExStream", "O-R"] < of_images.loc["CRS", "O-R"]
    yield "README.md", "CRS on text. On COCO ExStream: it predicts"

    table = table_of("head_choice").query("optimizer == 'adam'")
    table = table.set_index("learning_rate").drop(columns="optimizer")
    vote, used = table.loc[0.002].round(1), table.loc[0.003].round(1)
    assert vote["mean"] == table["mean"].max().round(1)
    mean = f"0.002: {vote['mean']} mAP, against {used['mean']} with 0.003"
    yield REAL_COCO, mean
    yield REAL_COCO, f"from {used['PRS']} to {vote['PRS']} mAP"
    yield REAL_COCO, f"CRS does not: it has {used['CRS']} and {vote['CRS']}"

    table = table_of("exstream_merging").query("metric == 'mAP'")
    table = table.set_index("method").round(1)
    worth, rest = table.loc["ExStream"], -table.loc["Unmerged", "difference"]
    loss = f"loses {worth['difference']} points of mAP"
    yield EXSTREAM, loss
    yield (
        EXSTREAM,
        f"interval {worth['low']} to {worth['high']}, ten seeds, the open test images",
    )
    yield EXSTREAM, f"It is then {rest} points below PRS"
    yield "notebooks/main_results.py", f"{loss}. It is then {rest} below"

    table = table_of("mammoth").fillna({"alpha": 0})
    rights = table.groupby(["method", "alpha"])[["mammoth", "prslib"]]
    cells = rights.mean().map("{:.1f}".format) + rights.std().map(" ± {:.1f}".format)
    names = {"DER++": ("DER++", 0.1), "DER++, `alpha` 1": ("DER++", 1.0)}
    for name, row in (names | {"ER-ACE": ("ER-ACE", 0.0)}).items():
        theirs, ours = cells.loc[row]
        yield METHODS, f"| {name} | {theirs} | {ours} |"
    yield METHODS, f"over {table['seed'].nunique()} seeds"
    assert table["largest_loss_gap"].max() < 2e-6  # "less than 0.000002"

    keys = ["plain", "contestant"]
    times = table_of("step_losses", "bench").set_index(keys)["times_plain"]
    named = times.map("{:.2f} times".format)
    over_plain = named["multilabel_soft_margin"]
    yield METHODS, f"DER++ takes {over_plain['DER++']} as long as a plain one"
    replayed = named["20 replayed", "DER++"]
    yield METHODS, f"and {replayed} as long as a plain one that replays 20 samples"
    yield METHODS, f"a step of ER-ACE {over_plain['ER-ACE']} as long as a plain one"
    further = [("multilabel_soft_margin", name) for name in ("20 replayed", "DER++")]
    as_many_samples = times.drop(further)
    assert as_many_samples.max() < 1.15  # "at most 1.15 times", in docs/losses

    ratios = table_of("whole_cpu", "bench").set_index(["dataset", "contestant"])
    ratios = ratios["ratio"].map("{:.2f}".format).unstack("dataset")
    features, images = ratios["cocoseq-mini"], ratios["digits70seq"]
    yield GPU, f"cocoseq-mini takes {features['without scores']} times as long"
    yield GPU, f"and {images['without scores']} times on digits70seq"
    both = f"{features['with scores']} and {images['with scores']} times as long"
    yield GPU, f"it takes {both}"

    steps = table_of("step_h200", "bench").set_index(["precision", "part"])["ms"]
    parts = ["launched singly", "step", "compiled", "floor"]
    for name, begin in {"bf16": "bfloat16", "fp32": "float32", "tf32": "TF32"}.items():
        cells = " | ".join(f"{steps[name, part]:.1f} ms" for part in parts)
        yield GPU, f"| {begin}"
        yield GPU, f"| {cells} |"
    assert steps["any"].sum() < 0.01 * steps["bf16", "step"]
    kernels = table_of("kernels_h100", "bench").set_index("kernels")["ms"]
    kernels = kernels.map("{:.1f} ms".format)
    step = table_of("step_h100", "bench").set_index(["precision", "part"])["ms"]
    yield GPU, f"a step takes {step['bf16', 'step']:.1f} ms"
    norm, products, rest, optimiser = (
        kernels["batch norm"],
        kernels["convolutions, matrix products"],
        kernels["additions, ReLU"],
        kernels["optimiser and clipping"],
    )
    yield (
        GPU,
        f"batch norm takes {norm} of it, convolutions and matrix products {products}",
    )
    yield GPU, f"additions and ReLU {rest}, and the optimiser with clipping {optimiser}"
    kinds = table_of("card_h100", "bench").set_index("kind")
    for name, row in kinds.drop("Finetune").iterrows():
        yield GPU, f"| {name}"
        yield GPU, f"| {row['ms']:.0f} ms | {row['GB']:.1f} GB |"
    rate = kinds["tflops"]
    before = table_of("card_h200", "bench").set_index("kind")["tflops"]
    reached = f"{rate['PRS']:.0f} TFLOP a second there and {before['PRS']:.0f}"
    yield GPU, f"PRS reached {reached} on the H200"
    slow = rate[["EWC", "ER-ACE", "DER++", "GSS"]]
    yield GPU, f"and GSS, reached {slow.min():.0f} to {slow.max():.0f} on the H100"
    table = table_of("agreement_h100", "bench")
    largest, mean = table["largest"].max(), table["mean_difference"].abs().max()
    yield GPU, f"by at most {largest:.2f} points in one run and by at most {mean:.2f}"
    low, high = table["sd_of_seeds"].min(), table["sd_of_seeds"].max()
    yield GPU, f"the standard deviation over seeds is {low:.1f} to {high:.1f}"
    assert set(table["same_memory"].dropna()) == {1.0} and set(table["runs"]) == {5}
    whole = table_of("drawn_images_h200", "bench").set_index("method")
    drawing, preparing = whole[["draw_s", "prepare_s"]].iloc[0]
    yield GPU, f"Drawing took {drawing:.0f} s and"
    yield GPU, f"`prslib prepare` {preparing:.0f} s on 16 cores"
    steps = f"A run of {whole.at['PRS', 'steps']:,} steps, scores included, took"
    seconds = whole["seconds"].map("{:.0f} s".format)
    yield GPU, f"{steps} {seconds['PRS']} for PRS and {seconds['CRS']} for CRS"
    yield GPU, f"with {whole['GB'].max():.0f} GB of the card's memory, images included"
    rare = whole["minority mAP"].map("{:.0f}".format)
    yield (
        GPU,
        f"PRS reached {rare['PRS']} mAP on the minority classes and CRS {rare['CRS']}",
    )
    assert whole["same_memory"].all()
    rounds = table_of("many_cuda", "bench").groupby("way")["runs_an_hour"]
    runs = rounds.median()
    more = runs["8 processes"] / runs["one at a time"]
    yield GPU, f"of small networks finish {more:.1f} times as many runs an hour"


@pytest.mark.parametrize(("page", "sentence"), list(sentences()))
def test_a_page_says_what_the_table_says(page, sentence):
    text = (ROOT / page).read_text().replace("\n# ", " ")
    assert sentence in " ".join(text.split())
