"""Tests for River: its estimator checks, and tests of what the wrapper adds.

In River, they would be part of ``river/imblearn/test_prs_replay.py``. The estimator checks
could then be omitted, because River runs them for every estimator.
"""

import collections

import pytest
from river import checks, linear_model, multioutput
from river_replay import PRSReplay

MODEL = PRSReplay(linear_model.LogisticRegression(), seed=42)


@pytest.mark.parametrize("check", [*checks.yield_checks(MODEL)], ids=str)
def test_check_estimator(check):
    check(MODEL.clone())


def test_rare_classes_stay_in_memory():
    model = PRSReplay(MODEL.classifier.clone(), size=40, seed=1)
    for i in range(1000):
        model.learn_one({"x": i % 50}, i % 50 == 0)
    assert len(model._memory) == 40
    assert abs(sum(y for _, y in model._memory) - 20) <= 2


def test_several_labels():
    classifier = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
    model = PRSReplay(classifier, size=40, seed=1)
    for i in range(1000):
        model.learn_one({"x": i % 50}, {"rare": i % 50 == 0, "frequent": i % 50 != 0})
    counts = collections.Counter(
        name for _, y in model._memory for name in y if y[name]
    )
    assert abs(counts["rare"] - 20) <= 2
    assert model.predict_one({"x": 49}).keys() == {"rare", "frequent"}


def test_an_observation_without_labels_is_learned_but_not_stored():
    classifier = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
    model = PRSReplay(classifier, seed=1)
    model.learn_one({"x": 1}, {"a": False, "b": False})
    assert model._memory == []
