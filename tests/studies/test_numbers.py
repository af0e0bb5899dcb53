"""Numbers of studies that pages tell by hand are those of the committed tables."""

import pandas as pd

from prslib.paths import project_root

ROOT = project_root()


def table_of(name):
    return pd.read_csv(ROOT / "figures" / "studies" / f"{name}.csv")


def page(name):
    return " ".join((ROOT / name).read_text().split())


def ends(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def test_the_coverage_of_intervals():
    table = table_of("interval_coverage")
    short = (table["group"] == "minority") & (table["metric"] != "mAP")
    minority, others = table[short], table[~short]
    real_coco = page("docs/real_coco.md")
    covered = ends(minority["covered"])
    for name in ("README.md", "docs/index.md"):
        assert f"in {covered} of 100 test sets" in page(name)
    assert f"in {others['covered'].min():.0f} or more of 100 cases" in real_coco
    assert (
        f"the exception, with {covered}: on {ends(minority['both_zero'])} of 100 test"
        in (real_coco)
    )
    assert f"in {ends(minority['covered_else'])} of 100 (" in real_coco


def test_the_worth_of_more_seeds():
    table = table_of("more_seeds").set_index(["group", "metric"])
    mean = table.loc["overall", "mAP"]
    said = (
        f"ten seeds add a standard error of {mean['error_of_seeds']:.1f} points and the "
        f"images one of {mean['error_of_images']:.1f}. Thirty seeds would make that "
        f"error {mean['narrower']:.0f} % smaller, and those of the other scores "
        f"{ends(table['narrower'])} %"
    )
    assert said in page("docs/real_coco.md")


def test_the_worth_of_merging():
    table = table_of("exstream_merging")
    table = table[table["metric"] == "mAP"].set_index("method").round(1)
    worth, rest = table.loc["ExStream"], -table.loc["Unmerged", "difference"]
    said = page("docs/samplers/exstream.md")
    assert f"loses {worth['difference']} points of mAP" in said
    assert f"interval {worth['low']} to {worth['high']}, ten seeds" in said
    assert f"It is then {rest} points below PRS" in said
    notebook = page("notebooks/main_results.py").replace(" # ", " ")
    assert (
        f"loses {worth['difference']} points of mAP and is then {rest} below"
        in notebook
    )
