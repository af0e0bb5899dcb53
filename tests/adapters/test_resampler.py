import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from prslib.adapters import MemoryResampler, multi_hot


@parametrize_with_checks([MemoryResampler(20)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


Y = np.random.default_rng(1).random((600, 4)) < [0.9, 0.5, 0.1, 0.02]
Y = Y[Y.any(axis=1)]
X = np.arange(len(Y))[:, None]


@pytest.mark.parametrize("method", ["prs", "cbrs", "ocdm"])
def test_resampling_balances_several_labels(method):
    resampler = MemoryResampler(60, method, random_state=3)
    kept, labels = resampler.fit_resample(X, Y)
    assert len(kept) == len(labels) == 60
    assert (kept[:, 0] == resampler.sample_indices_).all()
    assert (labels == Y[kept[:, 0]]).all()
    assert labels[:, 3].mean() > 2 * Y[:, 3].mean()
    assert list(resampler.sampling_strategy_.values()) == labels.sum(axis=0).tolist()
    assert len(MemoryResampler(10**4, method).fit_resample(X, Y)[0]) == len(X)


@pytest.mark.parametrize("of", [list, pd.DataFrame, sparse.coo_array])
def test_several_labels_come_in_any_form(of):
    rows = MemoryResampler(60).fit(X, Y).sample_indices_
    _, kept = MemoryResampler(60).fit_resample(X.tolist(), of(Y.astype(int)))
    kept = kept.toarray() if sparse.issparse(kept) else np.asarray(kept)
    assert (kept == Y[rows]).all()


@pytest.mark.parametrize(
    "coded",
    [
        Y * 2.0 - 1,
        np.where(Y | (X % 2 > 0), Y, -1),
        np.where(Y | (X % 2 > 0), Y, np.nan),
        torch.tensor(Y, dtype=torch.float32, requires_grad=True),
        Y.astype(int).tolist(),
        [tuple(row) for row in Y.astype(int)],
        pd.Series(list(Y.astype(int))),
        pd.DataFrame(Y).astype("Int64").replace({0: pd.NA}),
        Y.astype(object),
        pd.DataFrame(Y).astype("boolean"),
    ],
)
def test_labels_are_also_coded_otherwise(coded):
    rows = MemoryResampler(60).fit(X, Y).sample_indices_
    assert (MemoryResampler(60).fit(X, coded).sample_indices_ == rows).all()


@pytest.mark.parametrize(
    ("coded", "values"),
    [
        (Y * 255, "0, 255"),
        (Y + 1, "1, 2"),
        (Y * -1, "(0, -1|-1, 0)"),
        (np.where(Y, 1, np.arange(4) - 1), r"0, 1, 2, -1"),
        (Y * 0.5, "0.0, 0.5"),
        (np.where(Y, "yes", "no"), "'(no', 'yes|yes', 'no)'"),
        (sparse.csr_array(Y * 2), "0, 2"),
    ],
)
def test_other_values_are_named_with_what_to_write(coded, values):
    with pytest.raises(ValueError, match=f"got the values {values}; write y == v"):
        MemoryResampler(60).fit_resample(X, coded)


def test_rows_without_a_label_are_left_out_with_a_warning():
    labels = Y.copy()
    labels[::10] = False
    with pytest.warns(UserWarning, match=f"{len(Y[::10])} of {len(Y)} rows have no"):
        kept, _ = MemoryResampler(10**4).fit_resample(X, labels)
    assert (kept == X[labels.any(axis=1)]).all()
    with pytest.raises(ValueError, match=f"got {len(X)} rows without any label"):
        MemoryResampler(60).fit_resample(X, np.zeros_like(Y))


def test_text_labels_and_seeds():
    names = [["cat", "dog", "eel", "fly"][k] for k in Y.argmax(axis=1)]
    resampler = MemoryResampler(60, random_state=np.random.RandomState(0))
    _, kept = resampler.fit_resample(X, names)
    assert isinstance(kept, list) and kept[0] in names
    assert sum(resampler.sampling_strategy_.values()) == 60
    chosen = [MemoryResampler(60, random_state=None).fit(X, Y) for _ in range(2)]
    assert (chosen[0].sample_indices_ != chosen[1].sample_indices_).any()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        resampler.fit_resample(X[1:], Y)
    assert len(resampler.fit_resample(X, np.zeros(len(X)))[0]) == 60  # one class


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType(), "<U3"])
def test_one_label_a_row_is_of_any_type(dtype):
    names = np.array(["cat", "dog", "eel", "fly"], dtype)[Y.argmax(axis=1)]
    rows = MemoryResampler(60).fit(X, Y.argmax(axis=1)).sample_indices_
    for labels in (names, Y.argmax(axis=1).astype(object)):
        assert (MemoryResampler(60).fit(X, labels).sample_indices_ == rows).all()


def test_masked_and_ambiguous_targets_are_refused():
    with pytest.raises(TypeError, match="y: expected an array, got a masked array"):
        MemoryResampler(60).fit(X, np.ma.array(Y, mask=Y))
    for rows in ([["cat"], ["cat", "dog"]], [[1], [0, 2]], [{1}, {0}]):
        with pytest.raises(ValueError, match="MultiLabelBinarizer makes rows of lists"):
            MemoryResampler(60).fit(X[:2], rows)
    with pytest.raises(ValueError, match="contains NaN"):
        MemoryResampler(60).fit(X[:2], [None, 1])
    survival = np.zeros(len(X), [("event", bool), ("time", float)])
    with pytest.raises(TypeError, match=r"got fields .*; leave one field, y\[name\]"):
        MemoryResampler(60).fit(X, survival)


@pytest.mark.parametrize("other", [None, np.nan, pd.NA, 1])
@pytest.mark.parametrize("of", [np.array, list, pd.Series])
def test_a_missing_label_is_no_class_of_that_name(other, of):
    names = np.array(["cat", other, "dog"] * 20, object)
    with pytest.raises(
        TypeError, match=r"y: expected text alone, got .*leave out rows"
    ):
        MemoryResampler(10).fit(np.arange(60)[:, None], of(names))


def test_sparse_tensors_are_made_dense():
    y = torch.tensor(Y).float()
    resampler = MemoryResampler(60)
    assert torch.equal(
        resampler.fit_resample(X, y)[1], resampler.fit_resample(X, y.to_sparse())[1]
    )


def test_it_is_a_step_of_a_pipeline():
    pipeline = pytest.importorskip("imblearn.pipeline", reason="no imbalanced-learn")
    made = pipeline.make_pipeline(MemoryResampler(20), KNeighborsClassifier(1))
    assert made.fit(X, Y)[-1].n_samples_fit_ == 20


# what imbalanced-learn's own samplers refuse, and a memory takes
TAKEN = {
    "check_target_type": "several labels a sample",
    "check_samplers_one_label": "samples of one class",
}


def test_imbalanced_learns_checks():
    checks = pytest.importorskip(
        "imblearn.utils.estimator_checks", reason="no imblearn"
    )
    names = []
    for estimator, check in checks.estimator_checks_generator(MemoryResampler()):
        name = check.func.__name__
        names.append(name)
        if name not in TAKEN:
            check(estimator)
    assert {*TAKEN, "check_samplers_pandas", "check_samplers_sparse"} <= {*names}


def test_it_balances_the_bags_of_an_ensemble():
    ensemble = pytest.importorskip("imblearn.ensemble", reason="no imbalanced-learn")
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(1000) < 0.05, "rare", "usual")
    inputs = rng.normal(size=(1000, 2)) + 2 * (labels == "rare")[:, None]
    bags = ensemble.BalancedBaggingClassifier(
        sampler=MemoryResampler(60), n_estimators=5, random_state=0
    ).fit(inputs, labels)
    for pipeline in bags.estimators_:
        counts = list(pipeline["sampler"].sampling_strategy_.values())
        assert sum(counts) == 60 and min(counts) >= 25
    assert (bags.predict(inputs)[labels == "rare"] == "rare").mean() > 0.8


def test_targets_become_multi_hot_rows():
    numbers = np.array([2, 0, 4])
    rows = np.eye(5, dtype=bool)[numbers]
    for targets in (
        numbers,
        torch.tensor(numbers),
        [torch.tensor(number) for number in numbers],
        [torch.tensor(row) for row in rows],
        rows.astype(float),
    ):
        assert (multi_hot(targets, 5) == rows).all()


@pytest.mark.parametrize(
    ("targets", "match"),
    [
        ([0, 5], "expected class numbers from 0 to 4, got 5"),
        ([0, -1], "expected class numbers from 0 to 4, got -1"),
        ([0.0, 1.0], "got a list of float; scikit-learn"),
        (np.array([[0, 1, 1]]), r"rows \(B, 5\) .* got int64 \(1, 3\)"),
        (np.array([[0, 0.3, 0.7, 0, 0]]), "expected 0 and 1, .*, got 0.3"),
    ],
)
def test_a_target_that_cannot_be_represented_is_refused(targets, match):
    with pytest.raises(ValueError, match=match):
        multi_hot(targets, 5)
