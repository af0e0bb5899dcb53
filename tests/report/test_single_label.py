"""Tables of single_label."""

from cells import functions_of

single_label = functions_of("single_label")

TINY = "imbal-digits-tiny"


def test_the_papers_numbers_stand_beside_its_own_data_only():
    trained = single_label.order_scores(TINY, "random", 2)
    first = ["4+6,2+7,3+5,0+9,1+8", "2+9,3+6,0+4,7+8,1+5"]
    assert trained["schedule"].unique().tolist() == first
    assert trained["published"].isna().all()  # a stand-in
    printed = single_label.printed_accuracies("Imbal-MNISTseq")
    prs = printed.loc[printed["method"] == "PRS", "value"]
    assert prs.tolist() == [21.46, 40.04, 31.3, 57.84, 68.45]
