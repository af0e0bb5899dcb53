"""Numbers of studies and benchmarks that pages tell by hand are those of the tables."""

import math

import pandas as pd
import pytest
from told import IN_WORDS, ROOT, contains, in_words, table_of

from prslib.report import measures
from prslib.statistics import SMALL

REAL_COCO = "docs/real_coco.md"
EXSTREAM = "docs/samplers/exstream.md"
SUMMARY = "docs/report/README.md"
CHOOSING = "docs/samplers/index.md"
METHODS = "docs/methods.md"
SPEED = "docs/speed.md"
REUTERS = "docs/reuters.md"
OTHERS = "docs/other_streams.md"
INDEX = "docs/index.md"
RULES = "docs/what_holds.md"
OWN_DATA = "docs/own_data.md"
LEDGER = "notebooks/ledger.py"
SINGLE = "notebooks/single_label.py"
MULTITASK_RA = (
    "architecture == 'RNN-Attention' and dataset == 'COCOseq' and epochs == 1 and "
    "method == 'Multitask' and test_set == 'balanced' and "
    "group == 'overall' and metric == 'C-F1'"
)
PAPERS_RESULT = (  # with the standard memory, at the end
    "table == 'main' and dataset == 'COCOseq' and trained_tasks == 4 "
    "and group == 'overall' and measure == 'score'"
)
PRECISIONS = {"bf16": "bfloat16, the paper profile", "fp32": "float32"}
PRECISIONS |= {"tf32": "TF32 (not used in runs)"}
PARTS = ["launched singly", "step", "compiled", "floor"]
SINGLY = ("EWC", "ER-ACE", "DER++")  # whose kernels are launched one by one


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
    yield REAL_COCO, f"For mAP with {in_words(table['seeds'])} seeds, the"
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

    status = table_of("ledger_cells", "seeds")["status"]
    run = (status == "run").sum()
    of_paper = f"{run} of the paper's {len(status)} numbers"
    yield SUMMARY, f"has a counterpart for {of_paper}"
    assert 0.6 < run / len(status) < 0.7
    yield "paper.md", "for about two thirds of the numbers in the paper"
    gaps = table_of("when_it_pays_minus_crs", "seeds")
    ten, four = in_words(gaps["seeds"]), IN_WORDS[gaps["dataset"].nunique()]
    yield "README.md", f"difference from CRS over {ten} seeds on {four} streams (COCO,"
    streams = f"result on {four} real streams (COCO images, news articles, icons and"
    yield CHOOSING, f"{streams} clip art), where each result is a mean over {ten} seeds"
    yield SUMMARY, f"Most methods were run with {ten} seeds"
    shares = table_of("memory_distribution_distance", "seeds")
    of_mini = shares.query("dataset == 'cocoseq-mini'")
    seeds = of_mini["seed"].nunique()
    yield INDEX, f"Lines are means over {seeds} seeds"
    memories = f"the shares of the {IN_WORDS[seeds]} memories are averaged first"
    yield CHOOSING, f"{IN_WORDS[seeds]} memories, one per seed"
    yield CHOOSING, memories
    yield CHOOSING, f"the mean of {IN_WORDS[seeds]} memories (last column)"
    five = in_words(table_of("when_it_pays_cuts", "seeds")["seeds"])
    yield CHOOSING, f"draws of the stream with {five} seeds each"
    five = in_words(table_of("architectures_prs_minus_crs", "seeds")["seeds"])
    yield "notebooks/architectures.py", f"with all three networks and {five} seeds"
    further = table_of("more_streams")["dataset"].nunique()
    yield OTHERS, f"with CRS on {IN_WORDS[further + 1]} further collections"
    yield OTHERS, "the results for all collections except GoEmotions"
    table = table_of("other_seeds")
    assert table.loc[table["firm"], "same_sign"].all()
    clear = table.query("low > 0 or high < 0")
    turned = clear.loc[~clear["same_sign"], "dataset"]
    kept = f"{len(clear) - len(turned)} of the {len(clear)} significant differences"
    yield (
        SUMMARY,
        f"{kept} from CRS keep their sign; the other {IN_WORDS[len(turned)]} are on icons",
    )
    assert set(turned) == {"mdiseq"}
    sizes = table_of("schedules_and_memory_sizes", "seeds")
    sizes = sizes[(sizes["group"] == "overall") & (sizes["measure"] == "score")]
    sizes = sizes[sizes["test_set"] == "balanced"]
    keys = ["dataset", "metric", "memory_size", "method"]
    means = sizes.set_index(keys)["mean"].unstack("method")
    few = means.loc["cocoseq-mini"].xs(60, level="memory_size")
    assert set(few.loc[["mAP", "C-F1"]].idxmax(axis=1)) == {"ExStream"}
    text = means.loc["reutersseq"]
    assert (text["PRS"] > text["ExStream"]).all()
    yield CHOOSING, "on Reuters it is behind `prs` at every size"
    table = table_of("head_choice").query("optimizer == 'adam'")
    table = table.set_index("learning_rate").drop(columns="optimizer")
    vote, used = table.loc[0.002].round(1), table.loc[0.003].round(1)
    assert vote["mean"] == table["mean"].max().round(1)
    nine = IN_WORDS[table.shape[1] - 1]
    yield REAL_COCO, f"In a later comparison of all {nine} methods of the report on"
    mean = f"0.002: {vote['mean']} mAP, against {used['mean']} with 0.003"
    yield REAL_COCO, mean
    yield REAL_COCO, f"from {used['PRS']} to {vote['PRS']} mAP"
    yield REAL_COCO, f"at about the same level ({used['CRS']} and {vote['CRS']})"

    table = table_of("exstream_merging").query("metric == 'mAP'")
    table = table.set_index("method").round(1)
    worth, rest = table.loc["ExStream"], -table.loc["Unmerged", "difference"]
    loss = f"loses {worth['difference']} points of [mAP](../metrics.md) compared with"
    yield EXSTREAM, loss
    yield (
        EXSTREAM,
        f"CI {worth['low']} to {worth['high']}, 10 seeds, [test set](../real_coco.md#test-sets)",
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
    others = times.drop("convolutions, matrix products")
    assert others.sum() / step > 0.5
    yield SPEED, "More than half of the time is therefore spent on reading and writing"
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
    nine = IN_WORDS[len(near) - 2]
    yield SPEED, f"The {nine} methods of the report, DER++ and ER-ACE were trained"
    yield SPEED, f"on a CPU, with {in_words(near['runs'])} seeds each"
    mean, spread = near["mean_difference"].abs().max(), near["sd_of_seeds"]
    yield SPEED, f"at most {near['largest'].max():.2f} points in one run"
    yield SPEED, f"at most {mean:.2f} in the mean of a method"
    yield SPEED, f"over seeds is {spread.min():.1f} to {spread.max():.1f}."
    prs, crs = table_of("drawn_images_h200", "bench").to_dict("records")
    slow = prs["steps"] * card["ms"]["GSS"] / 60000
    yield (
        "docs/gpu_and_cluster.md",
        f"the paper profile, and {slow:.0f} minutes for GSS",
    )
    size = prs["images"] * 256 * 256 * 3 / 1e9
    yield REAL_COCO, f"into one file (`images.npy`, {size:.1f} GB for COCOseq)"
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
    derpp = f"{plain['DER++']:.2f} times as long as a step of CRS"
    fair = f"{steps['20 replayed', 'DER++']:.2f} times as long as a step of CRS that"
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
    share = 100 * times["PRS", 70, 1] / times["CUTER's PRS", 70, 1]
    yield (
        SPEED,
        f"prslib needs about {share:.0f} % of the time of CUTER's PRS if samples",
    )
    buffers = times[["Mammoth balanced", "CapyMOA balanced"]]
    least = (buffers / times["CBRS", 70].rename_axis("batch")).min()
    yield SPEED, f"need at least {IN_WORDS[int(least)]} times as long as CBRS"
    slots = table.groupby("classes")["memory"].max()
    yield SPEED, f"full memory of {slots[70]:,} slots and the labels of COCOseq"
    large = ends(times["PRS", 80] / times["PRS", 70])
    yield SPEED, f"With 80 classes and {slots[80]:,} slots, it needs {large} times"
    assert (times["PRS", 1000] / times["PRS", 70]).between(3, 4).all()
    slow = "PRS needs three to four times as long as in the table"
    yield SPEED, f"With 1,000 classes and {slots[1000]:,} slots, {slow}"
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
    yield METHODS, "libraries compute in a step differ by less than 0.000002"
    seeds = mammoth.groupby(["method", "alpha"])["seed"].nunique()
    yield METHODS, f"mean and standard deviation over {seeds.max()} seeds"
    for (method, alpha), rows in mammoth.groupby(["method", "alpha"]):
        name = method if alpha == 0.1 else f"{method}, `alpha` 1"
        cells = [rows[of].agg(["mean", "std"]) for of in ("mammoth", "prslib")]
        cells = [f"{mean:.1f} ± {std:.1f}" for mean, std in cells]
        yield METHODS, f"| {name} | {cells[0]} | {cells[1]} |"


def published():
    """Yield numbers of the paper and how near our runs of MNIST come to them."""
    tables = table_of("tables", ROOT / "prslib/published")
    final = tables.query(PAPERS_RESULT).set_index(["method", "metric"])["value"]
    assert round((final["PRS"] - final["CRS"]).min() / 2) == SMALL
    for page in (RULES, OWN_DATA, LEDGER):
        yield page, f"interval contains 0 and is within {SMALL:g} points of it"
    yield OWN_DATA, f"The margin of {SMALL:g} points is about half of the smallest"
    yield CHOOSING, f"whose mean is within {SMALL:g} points of the highest"
    sizes = sorted(tables.query("table == 'coco_memory'")["memory_size"].unique())
    sizes = "{:.0f}, {:.0f} and {:.0f} samples".format(*sizes)
    yield "notebooks/schedules_and_memory.py", f"both with memories of {sizes}"
    offline = tables.query(MULTITASK_RA).drop_duplicates("table")["value"].tolist()
    printed = f"twice, as {offline[0]} % and as {offline[1]} %"
    yield (
        "notebooks/architectures.py",
        f"prints the C-F1 of Multitask with RA {printed}",
    )
    first = tables.query("table == 'mnist' and trained_tasks == 1")
    first = first.set_index("method")["value"]["Finetune"]
    yield SINGLE, f"Finetune reaches {first} % after its first task"
    orders = table_of("single_label_imbal-mnistseq_nearest", "paper")
    distances = measures.distances(orders[orders["look"] == "third"])
    near = distances[distances["largest"] <= 5]
    assert near["schedule"].str.startswith("1+2").all()
    words = "orders of the last round, both of which begin with {1, 2}, agree with all"
    # {1, 2} or {1, 7} first, then four pairs in any order
    possible = 2 * math.factorial(8) // 2**4
    yield SINGLE, f"the two orders were selected from {possible:,} by the same"
    yield SINGLE, f"{IN_WORDS[len(near)].capitalize()} {words}"


def coverage():
    """Yield how many intervals hold the true difference."""
    held = table_of("interval_coverage").set_index(["dataset", "images"])
    coverage = f"{ends(held.loc['reutersseq', 'covered'])} % of the 95 % intervals for"
    yield REUTERS, f'On "imbalanced", {coverage} the difference between'
    of_coco = held.loc["cocoseq-mini"]
    alike, both, further = sorted(set(of_coco.index))
    on_both, on_open = (ends(of_coco.loc[n, "covered"]) for n in (both, further))
    coverage = f"{on_open} % on {further:,} open images and {on_both} % on {both}"
    yield REAL_COCO, f"The coverage of the 95 % intervals is {coverage}"
    few = of_coco.loc[alike].set_index(["group", "metric"])["covered"]
    odd = few["minority"][["C-F1", "O-F1"]]
    rest = few.drop([("minority", "C-F1"), ("minority", "O-F1")])
    none = of_coco.loc[alike].query("metric == 'C-F1'").set_index("group")["both_zero"]
    yield REAL_COCO, f"on {none['minority']:.0f} of 100 such sets neither"
    more = of_coco.loc[both].query("group == 'minority'").set_index("metric")["covered"]
    scores = f"C-F1 ({more['C-F1']:.0f} %) and O-F1 ({more['O-F1']:.0f} %) is below 90"
    yield REAL_COCO, f"On {both} images, too, the coverage of minority {scores}"
    yield (
        REAL_COCO,
        f"On {alike} images it is {ends(rest)} %, but only {ends(odd)} % in",
    )


@pytest.mark.parametrize("tell", [sentences, on_a_card, on_a_cpu, published, coverage])
def test_a_page_says_what_the_table_says(tell):
    missing = [pair for pair in tell() if not contains(*pair)]
    assert missing == []


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
