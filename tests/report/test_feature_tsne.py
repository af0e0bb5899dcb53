"""The images whose features are kept, and known answers for how far classes lie apart."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from prslib.datasets import Split, load_dataset
from prslib.datasets.curation import feature_rows
from prslib.report import feature_tsne as tsne
from prslib.training.config import Run, RunConfig
from prslib.training.learner import Learner
from prslib.training.run import initial_model, run

pytestmark = pytest.mark.usefixtures("one_thread")
ONE_LABEL, TINY = "imbal-digits-tiny", "digits70tiny"


@pytest.fixture(scope="module")
def trained():
    return run(RunConfig(dataset=ONE_LABEL, method="PRS", features_per_class=6))


def with_features(features, dataset=ONE_LABEL, method="PRS", seed=0):
    """A run that was not trained and whose features are these, six images a class."""
    config = RunConfig(dataset=dataset, method=method, seed=seed, features_per_class=6)
    return Run(config, pd.DataFrame(), np.zeros((0, 10), bool), features)


def classes_of(run):
    return tsne.labelled_images(run.config)["class"].to_numpy()


def blobs(spread, seed=0):
    classes = classes_of(with_features(None))
    rng = np.random.default_rng(seed)
    centres = 100 * np.eye(10, dtype=np.float32)
    return centres[classes] + spread * rng.normal(size=(60, 10)).astype(np.float32)


def test_a_test_set_without_single_labels_is_refused():
    pairs = Split(None, np.ones((3, 2), bool), np.zeros(3, np.int64))
    message = "features_per_class: expected test images with a single"
    with pytest.raises(ValueError, match=message):
        feature_rows(pairs, 5)


def test_features_and_head_give_the_scores():
    dataset = load_dataset(TINY)
    model = initial_model(RunConfig(dataset=TINY), dataset)
    learner = Learner(model, "adam", 0.002, "multilabel_soft_margin", 5.0)
    images = torch.from_numpy(dataset.train.images[:7])
    logits = model.head(torch.from_numpy(learner.features(images)))
    scores = torch.sigmoid(logits).detach().numpy()
    np.testing.assert_allclose(scores, learner.probabilities(images), atol=1e-6)


def test_a_run_leaves_what_the_head_sees_and_a_table_says_what_it_shows(trained):
    assert trained.features.shape == (60, 64)
    assert (trained.features >= 0).all()  # behind a ReLU
    dataset = load_dataset(ONE_LABEL, images=False)
    images = tsne.labelled_images(trained.config)
    np.testing.assert_array_equal(np.bincount(images["class"]), np.full(10, 6))
    labels = dataset.tests["full"].labels
    assert labels[images["image"], images["class"]].all()
    assert set(images.loc[images["class"] >= 4, "group"]) == {"minority"}
    names = np.array(dataset.class_names)[images["class"]]
    assert images["class_name"].tolist() == names.tolist()


def separated(run):
    return tsne.separation([run], 5).set_index(["metric", "group"])["value"]


def test_one_blob_scores_nothing_and_a_bad_group_is_seen():
    shuffled = blobs(0.01)
    rows = np.flatnonzero(classes_of(with_features(None)) >= 4)
    # the six rarest lie on each other
    shuffled[rows] = np.random.default_rng(1).normal(size=(36, 10))
    values = separated(with_features(shuffled))
    near = values["kNN accuracy"]
    assert near["majority"] == 100
    assert near["minority"] < 75
    assert values["silhouette", "minority"] < 20 < 90 < values["silhouette", "majority"]
    assert near["overall"] == pytest.approx((24 * 100 + 36 * near["minority"]) / 60)


def test_neighbours_agree_with_leaving_one_out():
    rng = np.random.default_rng(0)
    features, classes = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    vote = KNeighborsClassifier(5, weights="distance")
    expected = cross_val_predict(vote, features, classes, cv=LeaveOneOut()) == classes
    np.testing.assert_array_equal(tsne.neighbour_hits(features, classes, 5), expected)


def test_embedding_keeps_blobs_together_and_is_the_same_again():
    one = with_features(blobs(0.5))
    plane = tsne.embed([one])
    pd.testing.assert_frame_equal(plane, tsne.embed([one]))
    points = plane[["x", "y"]].to_numpy()
    assert tsne.neighbour_hits(points, plane["class"].to_numpy(), 3).mean() > 0.9
    names = load_dataset(ONE_LABEL, images=False).class_names
    plane = tsne.embed([one], [names[3]], others=2)  # the first images of the others
    counts = plane["class"].value_counts().sort_index()
    assert counts.tolist() == [2, 2, 2, 6, 2, 2, 2, 2, 2, 2]
    first = tsne.labelled_images(one.config).groupby("class")["image"].nsmallest(2)
    assert set(first) <= set(plane["image"])


def test_classes_are_picked_by_frequency():
    names = ["a", "b", "c", "d", "e", "f", "g"]
    groups = ["majority"] * 3 + ["moderate"] + ["minority"] * 3
    images = pd.DataFrame({"class": range(7), "class_name": names, "group": groups})
    freq = np.array([900, 1000, 950, 300, 10, 30, 20])
    assert tsne.typical_classes(images, freq, 2, few=6) == ["b", "c", "d", "g", "e"]
    middle = images.assign(group="moderate")
    assert tsne.typical_classes(middle, freq, 1, few=6) == ["d"]
    assert tsne.typical_classes(images, freq, 2) == ["b", "c", "a", "d", "f", "g", "e"]
    config = RunConfig(dataset=ONE_LABEL, features_per_class=1)
    assert tsne.shown_classes(config, 1) == list("0123456789")


def test_features_show_classes_by_colour_and_groups_by_marker(ax):
    groups = ["majority", "minority", "minority", "moderate"]
    frame = pd.DataFrame({"class_name": ["a", "b", "b", "c"], "group": groups})
    frame = frame.assign(x=[0.0, 1, 2, 3], y=[0.0, 1, 2, 3])
    tsne.plot_features(frame, ax, ["a", "b"])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["other classes", "a (majority)", "b (minority)"]
    _, first, second = ax.collections
    assert [len(drawn.get_offsets()) for drawn in ax.collections] == [1, 1, 2]
    assert not np.array_equal(first.get_facecolor(), second.get_facecolor())
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)
    with pytest.raises(ValueError, match=r"expected at most 10 classes.* got 11"):
        tsne.plot_features(frame, ax, [str(i) for i in range(11)])
