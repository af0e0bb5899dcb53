"""Numbers of studies that pages tell by hand are those of the committed tables."""

import pandas as pd
import pytest

from prslib.paths import project_root

ROOT = project_root()
REAL_COCO = "docs/real_coco.md"
EXSTREAM = "docs/samplers/exstream.md"
SUMMARY = "docs/report/README.md"
SAMPLERS = "docs/samplers/index.md"


def table_of(name, folder="studies"):
    return pd.read_csv(ROOT / "figures" / folder / f"{name}.csv")


def ends(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def sentences():
    """Yield pages and what each says."""
    index = ["test_set", "group", "metric"]
    table = table_of("more_seeds")
    medians = table.groupby(["dataset", "test_set"])["share_of_images"].median()
    of_coco = medians["cocoseq-mini"].round().astype(int)
    assert of_coco["open"] < 50 <= of_coco["imbalanced"]
    yield (
        REAL_COCO,
        f"is {of_coco['balanced']} % in the median score on `balanced`, "
        f"{of_coco['imbalanced']} % on `imbalanced` and {of_coco['open']} % on `open`",
    )
    of_text = medians["reutersseq"].round().astype(int)
    shares = f"{of_text['balanced']} % on `balanced` and {of_text['imbalanced']} % on"
    yield REAL_COCO, f"the documents' share is {shares} `imbalanced`"
    table = table.query("dataset == 'cocoseq-mini'")
    table = table.set_index(index).sort_index()
    errors = table[["error_of_seeds", "error_of_images"]]
    seeds, images = errors.loc["balanced", "overall", "mAP"]
    error = f"a standard error of {seeds:.1f} points and the images one of"
    yield REAL_COCO, f"{error} {images:.1f}."
    seeds, images = errors.loc["open", "overall", "mAP"]
    yield (
        REAL_COCO,
        f"On `open` the seeds cause {seeds:.1f} and the images {images:.1f}",
    )
    smaller = ends(table.loc["open", "narrower"])
    yield REAL_COCO, f"the standard error {smaller} % smaller"

    status = pd.read_csv(ROOT / "figures/seeds/ledger_cells.csv")["status"]
    run = (status == "run").sum()
    beside = "have one of ours beside them"
    yield SUMMARY, f"Of the paper's {len(status)} numbers {run} {beside}"
    firm = table_of("other_seeds").query("firm")
    assert len(firm) > 50 and firm["same_sign"].all()
    yield SUMMARY, "keep the sign of every difference that is firm"
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


@pytest.mark.parametrize(("page", "sentence"), list(sentences()))
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
