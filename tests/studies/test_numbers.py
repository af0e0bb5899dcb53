"""Numbers of studies that pages tell by hand are those of the committed tables."""

import pandas as pd
import pytest

from prslib.paths import project_root

ROOT = project_root()
REAL_COCO, EXSTREAM = "docs/real_coco.md", "docs/samplers/exstream.md"


def table_of(name):
    return pd.read_csv(ROOT / "figures" / "studies" / f"{name}.csv")


def ends(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def sentences():
    """Yield pages and what each says."""
    table = table_of("interval_coverage")
    short = (table["group"] == "minority") & (table["metric"] != "mAP")
    minority, others = table[short], table[~short]
    covered = ends(minority["covered"])
    yield "README.md", f"in {covered} of 100 test sets"
    yield "docs/index.md", f"in {covered} of 100 test sets"
    yield REAL_COCO, f"in {others['covered'].min():.0f} or more of 100 cases"
    zero = ends(minority["both_zero"])
    yield REAL_COCO, f"the exception, with {covered}: on {zero} of 100 test"
    yield REAL_COCO, f"in {ends(minority['covered_else'])} of 100 ("

    table = table_of("more_seeds").set_index(["group", "metric"])
    mean = table.loc["overall", "mAP"]
    yield REAL_COCO, f"add a standard error of {mean['error_of_seeds']:.1f} points and"
    yield REAL_COCO, f"images one of {mean['error_of_images']:.1f}. Thirty seeds"
    narrower = f"that error {mean['narrower']:.0f} % smaller"
    other_scores = f"those of the other scores {ends(table['narrower'])} %"
    yield REAL_COCO, f"{narrower}, and {other_scores}"

    table = table_of("exstream_merging").query("metric == 'mAP'")
    table = table.set_index("method").round(1)
    worth, rest = table.loc["ExStream"], -table.loc["Unmerged", "difference"]
    loss = f"loses {worth['difference']} points of mAP"
    yield EXSTREAM, loss
    yield EXSTREAM, f"interval {worth['low']} to {worth['high']}, ten seeds"
    yield EXSTREAM, f"It is then {rest} points below PRS"
    yield "notebooks/main_results.py", f"{loss} and is then {rest} below"


@pytest.mark.parametrize(("page", "sentence"), list(sentences()))
def test_a_page_says_what_the_table_says(page, sentence):
    text = (ROOT / page).read_text().replace("\n# ", " ")
    assert sentence in " ".join(text.split())
