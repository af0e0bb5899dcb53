"""The images whose features are kept, and known answers for how far classes lie apart."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from prslib.report import measures
from prslib.train import Run, RunConfig

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = RunConfig("imbal-digits-tiny", "PRS", features_per_class=6)


def with_features(features):
    """A run that was not trained and whose features are these, six images a class."""
    memory = np.zeros((0, 10), bool)
    return Run(CONFIG, pd.DataFrame(), memory, features={"full": features})


def blobs(spread):
    """Features of classes as far apart from each other as their seeds are near."""
    classes = measures.labelled_images(CONFIG)["class"].to_numpy()
    noise = np.random.default_rng(0).normal(size=(60, 10))
    return (100 * np.eye(10)[classes] + spread * noise).astype(np.float32)


def test_one_blob_scores_nothing_and_a_bad_group_is_seen():
    features = blobs(0.01)
    rare = measures.labelled_images(CONFIG)["class"].to_numpy() >= 4
    # the six rarest lie on each other
    features[rare] = np.random.default_rng(1).normal(size=(36, 10))
    cells = measures.separation(with_features(features), 5)
    values = cells.set_index(["metric", "group"])["value"]
    assert values["silhouette", "minority"] < 20 < 90 < values["silhouette", "majority"]
    near = values["kNN accuracy"]
    assert near["minority"] < 75 < near["majority"] == 100
    assert near["overall"] == pytest.approx((24 * 100 + 36 * near["minority"]) / 60)


def test_neighbours_agree_with_leaving_one_out():
    one = with_features(blobs(50.0))
    images = measures.labelled_images(CONFIG)
    vote = KNeighborsClassifier(5, weights="distance")
    voted = cross_val_predict(vote, blobs(50.0), images["class"], cv=LeaveOneOut())
    expected = 100 * (voted == images["class"]).groupby(images["group"]).mean()
    assert (expected.between(0, 100, inclusive="neither")).any()
    cells = measures.separation(one, 5).query("metric == 'kNN accuracy'")
    ours = cells.set_index("group")["value"]
    assert ours[expected.index].tolist() == pytest.approx(expected.tolist())
