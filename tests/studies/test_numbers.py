"""Numbers of studies and benchmarks that pages tell by hand are those of the tables."""

import numpy as np
import pandas as pd
import pytest

from prslib import DATASETS, load_dataset
from prslib.datasets import GROUPS
from prslib.paths import project_root
from prslib.report.answers import STREAMS

ROOT = project_root()
REAL_COCO = "docs/real_coco.md"
EXSTREAM = "docs/samplers/exstream.md"
SUMMARY = "docs/report/README.md"
SAMPLERS = "docs/samplers/index.md"
METHODS = "docs/methods.md"
SPEED = "docs/speed.md"
REUTERS = "docs/reuters.md"
OTHERS = "docs/other_streams.md"
LIMITATIONS = "docs/limitations.md"
LICENCES = "docs/licences.md"
CONTENTS = {  # of embedded files
    "cocoseq_mini": "images",
    "cocoseq_open": "further images",
    "reutersseq": "documents",
    "mdiseq": "icons",
    "clipartseq": "pictures",
}
PRECISIONS = {"bf16": "bfloat16, the paper profile", "fp32": "float32"}
PRECISIONS |= {"tf32": "TF32 (not used in runs)"}
PARTS = ["launched singly", "step", "compiled", "floor"]
SINGLY = ("EWC", "ER-ACE", "DER++")  # whose kernels are launched one by one
CUTS = [*(f"cap{size}" for size in (1000, 300, 100, 30)), "tiny"]
CUTS += [f"part{size}" for size in (5010, 3292, 1981, 893)]


def table_of(name, folder="studies"):
    return pd.read_csv(ROOT / "figures" / folder / f"{name}.csv")


def ends(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def sentences():
    """Yield pages and a sentence of each."""
    index = ["test_set", "group", "metric"]
    table = table_of("more_seeds")
    medians = table.groupby(["dataset", "test_set"])["share_of_images"].median()
    of_coco = medians["cocoseq-mini"].round().astype(int)
    assert of_coco["open"] < 50 <= of_coco["imbalanced"]
    shares = [f"{of_coco[name]} %" for name in ("balanced", "imbalanced", "open")]
    yield REAL_COCO, f"| `cocoseq-mini` | {' | '.join(shares)} |"
    of_text = medians["reutersseq"].round().astype(int)
    shares = f"{of_text['balanced']} % | {of_text['imbalanced']} %"
    yield REAL_COCO, f"| `reutersseq` | {shares} |"
    table = table.query("dataset == 'cocoseq-mini'")
    table = table.set_index(index).sort_index()
    errors = table[["error_of_seeds", "error_of_images"]]
    seeds, images = errors.loc["balanced", "overall", "mAP"]
    error = f"{seeds:.1f} points from the seeds and {images:.1f} points from the test"
    yield REAL_COCO, f"the standard error on `balanced` has two components, {error}"
    seeds, images = errors.loc["open", "overall", "mAP"]
    yield (
        REAL_COCO,
        f"On `open`, the components are {seeds:.1f} and {images:.1f} points",
    )
    smaller = ends(table.loc["open", "narrower"])
    yield REAL_COCO, f"the standard error {smaller} % smaller"

    status = pd.read_csv(ROOT / "figures/seeds/ledger_cells.csv")["status"]
    run = (status == "run").sum()
    of_paper = f"{run} of the paper's {len(status)} numbers"
    yield SUMMARY, f"has a counterpart for {of_paper}"
    firm = table_of("other_seeds").query("firm")
    assert len(firm) > 50 and firm["same_sign"].all()
    yield SUMMARY, "all firm differences keep their sign"
    sizes = table_of("schedules_and_memory_sizes", "seeds")
    sizes = sizes[(sizes["group"] == "overall") & (sizes["measure"] == "score")]
    sizes = sizes[sizes["test_set"] == "balanced"]
    keys = ["dataset", "metric", "memory_size", "method"]
    means = sizes.set_index(keys)["mean"].unstack("method")
    few = means.loc["cocoseq-mini"].xs(60, level="memory_size")
    assert set(few.loc[["mAP", "C-F1"]].idxmax(axis=1)) == {"ExStream"}
    text = means.loc["reutersseq"]
    assert (text["PRS"] > text["ExStream"]).all()
    yield SAMPLERS, "on Reuters it is behind `prs` at every size"
    table = table_of("head_choice").query("optimizer == 'adam'")
    table = table.set_index("learning_rate").drop(columns="optimizer")
    vote, used = table.loc[0.002].round(1), table.loc[0.003].round(1)
    assert vote["mean"] == table["mean"].max().round(1)
    mean = f"0.002: {vote['mean']} mAP, against {used['mean']} with 0.003"
    yield REAL_COCO, mean
    yield REAL_COCO, f"from {used['PRS']} to {vote['PRS']} mAP"
    yield REAL_COCO, f"at about the same level ({used['CRS']} and {vote['CRS']})"

    table = table_of("exstream_merging").query("metric == 'mAP'")
    table = table.set_index("method").round(1)
    worth, rest = table.loc["ExStream"], -table.loc["Unmerged", "difference"]
    loss = f"loses {worth['difference']} points of mAP"
    yield EXSTREAM, loss
    yield (
        EXSTREAM,
        f"CI {worth['low']} to {worth['high']}, 10 seeds, the open test images",
    )
    yield EXSTREAM, f"The variant is {rest} points below PRS"


def on_a_card():
    """Yield sentences about steps and whole runs from the page about speed."""
    steps = table_of("step_h200", "bench").set_index(["precision", "part"])["ms"]
    for precision, words in PRECISIONS.items():
        cells = [f"{steps[precision, part]:.1f} ms" for part in PARTS]
        yield SPEED, f"| {words} | {' | '.join(cells)} |"
    fetch, place = steps["any", "fetch"], steps["any", "sampler"]
    assert 0.005 < (fetch + place) / steps["bf16", "step"] < 0.01
    yield SPEED, f"took {fetch:.2f} ms and PRS {place:.2f} ms, together under 1 % of a"
    less = steps["bf16", "step"] - steps["bf16", "compiled"]
    yield SPEED, f"with it, a step on the H200 takes {less:.1f} ms less"
    of_h100 = table_of("step_h100", "bench").query("precision == 'bf16'")
    step = of_h100.set_index("part").loc["step", "ms"]
    yield SPEED, f"On an H100, a step takes {step:.1f} ms"
    times = table_of("kernels_h100", "bench").set_index("kernels")["ms"]
    operations = {
        "batch norm": times["batch norm"],
        "convolutions and matrix products": times.iloc[2],
        "additions and ReLU": times["additions, ReLU"],
        "optimiser and clipping": times["optimiser and clipping"],
    }
    for operation, time in operations.items():
        yield SPEED, f"| {operation} | {time:.1f} ms |"
    card = table_of("card_h100", "bench").set_index("kind")
    for kind, row in card.drop(index="Finetune").iterrows():
        kind += ", launched one by one" if kind in SINGLY else ""
        yield SPEED, f"| {kind} | {row['ms']:.0f} ms | {row['GB']:.1f} GB |"
    other = table_of("card_h200", "bench").set_index("kind")["tflops"]["PRS"]
    speed = (
        f"{card['tflops']['PRS']:.0f} TFLOP per second on the H100 and {other:.0f} on"
    )
    yield SPEED, f"PRS reached {speed} the H200"
    slow = ends(card["tflops"][[*SINGLY, "GSS"]])
    yield SPEED, f"reached {slow} on the H100"
    near = table_of("agreement_h100", "bench")
    mean, spread = near["mean_difference"].abs().max(), near["sd_of_seeds"]
    yield SPEED, f"at most {near['largest'].max():.2f} points in one run"
    yield SPEED, f"at most {mean:.2f} in the mean of a method"
    yield SPEED, f"over seeds is {spread.min():.1f} to {spread.max():.1f}."
    prs, crs = table_of("drawn_images_h200", "bench").to_dict("records")
    yield SPEED, f"The creation of the images took {prs['draw_s']:.0f} s"
    yield SPEED, f"`prslib prepare` {prs['prepare_s']:.0f} s"
    times = f"{prs['seconds']:.0f} s for PRS and {crs['seconds']:.0f} s for CRS"
    yield SPEED, f"A run of {prs['steps']:,} steps, including the computation"
    yield SPEED, f"of its scores, took {times}"
    yield SPEED, f"with {prs['GB']:.0f} GB of the card's memory"
    scores = [row["minority mAP"] for row in (prs, crs)]
    yield SPEED, f"{scores[0]:.0f} mAP on the minority classes and CRS {scores[1]:.0f}"


def on_a_cpu():
    """Yield how long runs and steps take beside plain ones, and Mammoth's accuracies."""
    ratios = table_of("whole_cpu", "bench").set_index(["contestant", "dataset"])
    ratios = ratios["ratio"].round(2)
    without, scored = ratios["without scores"], ratios["with scores"]
    rows = {
        "without the computation of scores": without,
        "with the scores of all test sets after each task": scored,
    }
    for words, row in rows.items():
        cells = [
            f"{row[name]} times as long" for name in ("cocoseq-mini", "digits70seq")
        ]
        yield SPEED, f"| {words} | {' | '.join(cells)} |"
    steps = table_of("step_losses", "bench").set_index(["plain", "contestant"])
    steps = steps["times_plain"]
    plain = steps["multilabel_soft_margin"]
    derpp = f"{plain['DER++']:.2f} times as long as a plain one"
    fair = f"{steps['20 replayed', 'DER++']:.2f} times as long as a plain one that"
    yield METHODS, f"takes {derpp}, and {fair}"
    yield METHODS, f"ER-ACE takes {plain['ER-ACE']:.2f} times as long"
    losses = plain.drop(["20 replayed", "DER++", "ER-ACE"])
    assert max(*losses, *steps["cross_entropy"]) < 1.15
    yield "docs/losses/index.md", "at most 1.15 times as long as a step with the plain"
    table = table_of("samplers", "bench")
    times = table.set_index(["contestant", "classes", "batch"])["us"].sort_index()
    shares = (times["CRS", 70] / times["Mammoth reservoir", 70]).round(1)
    shares = (100 * shares).astype(int)
    yield SPEED, f"CRS needs {shares[10]} % of the reservoir's time"
    yield SPEED, f"in batches of 10, and {shares[1]} % if they are added one at a time"
    in_batches = times["PRS", 70, 10] / times["CUTER's PRS", 70, 10]
    yield SPEED, f"at a time, and about {10 * in_batches:.0f}0 % if they are added in"
    large = ends(times["PRS", 80] / times["PRS", 70])
    yield SPEED, f"80 classes and 200,000 slots (16,000 sets), it needs {large} times"
    assert (times["PRS", 1000] / times["PRS", 70]).between(3, 4).all()
    yield SPEED, "PRS needs three to four times as long as in the table"
    slower = [
        times[name, size] / times[name, 70]
        for name in ("CRS", "CBRS")
        for size in (80, 1000)
    ]
    slower = pd.concat(slower)
    ratios = f"{slower.min():.1f} to {slower.max():.0f} times"
    yield SPEED, f"CRS and CBRS need {ratios} as long"
    mammoth = table_of("mammoth").fillna(0.1)
    assert 1e-6 < mammoth["largest_loss_gap"].max() < 2e-6
    yield METHODS, "the step losses of both libraries differ by less than 0.000002"
    for (method, alpha), rows in mammoth.groupby(["method", "alpha"]):
        name = method if alpha == 0.1 else f"{method}, `alpha` 1"
        cells = [rows[of].agg(["mean", "std"]) for of in ("mammoth", "prslib")]
        cells = [f"{mean:.1f} ± {std:.1f}" for mean, std in cells]
        yield METHODS, f"| {name} | {cells[0]} | {cells[1]} |"


def sizes():
    """Yield the sizes of real streams, and how many intervals hold the difference."""
    row = table_of("datasets_sizes", "seeds").set_index("dataset").loc["cocoseq-mini"]
    yield REAL_COCO, f"| training | {row['stream']:,} | 35,072 |"
    yield REAL_COCO, f"| balanced test | {row['test, classes alike']} | 6,366 |"
    as_it_comes = row["test, as the stream comes"]
    yield REAL_COCO, f"| imbalanced test | {as_it_comes} | 18,860 |"
    yield REAL_COCO, f"| `open` | {row['test, further images']:,.0f} |"
    yield "README.md", f"COCO refers to {row['stream']:,} of the 35,072 images"
    whole = table_of("datasets_sizes", "paper").set_index("dataset")["stream"]
    share = f"{100 * row['stream'] / whole['cocoseq']:.0f} %"
    yield SUMMARY, f"`cocoseq-mini`, {share} of the paper's COCOseq"
    yield REAL_COCO, f"a small version of COCOseq with {share} of the images"
    yield LIMITATIONS, f"contains {share} of COCOseq's images"
    rho = {name: DATASETS[name].recipe.rho for name in STREAMS}
    yield SUMMARY, f"near 0 ({rho.pop('cocoseq-mini')} on COCO, otherwise 0)"
    assert set(rho.values()) == {0}
    table = table_of("memory_distribution_distance", "paper")
    seeds = table.query("method == 'PRS'").groupby("dataset")["seed"].nunique()
    for name, rho in (("cocoseq", -0.03), ("nuswideseq", 0.02)):
        title = f"2,000 of {whole[name]:,} images, $\\rho = {rho}$, {seeds[name]} seeds"
        yield REAL_COCO, title
    away = table.pivot_table("to equal", "dataset", "method").round(1)
    coco, nus = away.loc["cocoseq"], away.loc["nuswideseq"]
    yield REAL_COCO, f"memory of CRS are {coco['CRS']} points away from equal shares"
    yield REAL_COCO, f"in the memory of PRS {coco['PRS']} points"
    yield REAL_COCO, f"the distances are {nus['CRS']} and {nus['PRS']} points"
    for name in ["reutersseq", *(f"reutersseq-{cut}" for cut in CUTS)]:
        data = load_dataset(name)
        counts = data.train.labels.sum(0)
        test = len(data.tests["imbalanced"].labels)
        most, least = f"{counts.max():,}", counts.min()
        size = f"{len(data.train.labels):,}"
        yield REUTERS, f"| `{name}` | {size} | {most} | {least} | {test:,} |"
    held = table_of("interval_coverage").set_index(["dataset", "images"])
    coverage = f"intervals is {ends(held.loc['reutersseq', 'covered'])} %"
    yield REUTERS, f"The coverage of the 95 % {coverage}"
    of_coco = held.loc["cocoseq-mini"]
    open_ends, both_ends = (ends(of_coco.loc[n, "covered"]) for n in (3199, 816))
    coverage = f"{open_ends} % on 3,199 open images and {both_ends} % on 816"
    yield REAL_COCO, f"The coverage of the 95 % intervals is {coverage}"
    few = of_coco.loc[323].set_index(["group", "metric"])["covered"]
    odd = few["minority"][["C-F1", "O-F1"]]
    rest = few.drop([("minority", "C-F1"), ("minority", "O-F1")])
    none = of_coco.loc[323].query("metric == 'C-F1'").set_index("group")["both_zero"]
    yield REAL_COCO, f"on {none['minority']:.0f} of 100 such sets neither"
    more = of_coco.loc[816].query("group == 'minority'").set_index("metric")["covered"]
    yield (
        REAL_COCO,
        f"({more['C-F1']:.0f} %) and O-F1 ({more['O-F1']:.0f} %) is below 90",
    )
    yield REAL_COCO, f"On 323 images it is {ends(rest)} %, but only {ends(odd)} % in"


def streams():
    """Yield what the embedded files contain."""
    for name, words in CONTENTS.items():
        with np.load(ROOT / "data" / f"{name}.npz") as file:
            number, width = file["features"].shape
        yield LICENCES, f"{width:,} features of {number:,} {words}"
    data = load_dataset("reutersseq")
    classes, documents = (
        np.bincount(tasks) for tasks in (data.class_task, data.train.task)
    )
    pairs = [
        f"({number}; {count:,})"
        for number, count in zip(classes, documents, strict=True)
    ]
    yield REUTERS, f"farm products ({classes[0]} classes, {documents[0]} documents)"
    yield REUTERS, f"metals, money and earnings {pairs[1]}, acquisitions, energy"
    yield REUTERS, f"shipping {pairs[2]}, and the economy {pairs[3]}"
    groups = [f"{data.class_group.count(group)} {group}" for group in GROUPS[::-1]]
    yield REUTERS, f"This gives {groups[0]}, {groups[1]} and {groups[2]} classes"
    alike, as_it_comes = data.tests["balanced"], data.tests["imbalanced"]
    yield REUTERS, f"contains all {len(as_it_comes):,} official test documents"
    yield REUTERS, f"contains {len(alike)} of them"
    is_frequent = np.array(data.class_group) == "majority"
    counts = as_it_comes.labels.sum(axis=0)
    share = 100 * counts[is_frequent].sum() / counts.sum()
    yield REUTERS, f'{share:.0f} % of the labels of "imbalanced" belong to majority'
    sizes = [DATASETS[name].recipe.memory_size for name in ("mdiseq", "clipartseq")]
    yield OTHERS, f"{sizes[0]} icons and {sizes[1]} clip art pictures"


ALL = [*sentences(), *on_a_card(), *on_a_cpu(), *sizes(), *streams()]


@pytest.mark.parametrize(("page", "sentence"), ALL)
def test_a_page_says_what_the_table_says(page, sentence):
    text = (ROOT / page).read_text().replace("\n# ", " ")
    assert sentence in " ".join(text.split())


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
