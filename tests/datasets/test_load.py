"""The embedded data sets hold exactly what their profiles say."""

from dataclasses import replace

import numpy as np
import pytest

from prslib.datasets import (
    DATASETS,
    GROUPS,
    SequentialDataset,
    Split,
    curation,
    digits,
    fingerprint,
    load_dataset,
    validate_schedule,
)
from prslib.datasets import scenes as glyphs
from prslib.training.config import RunConfig

PLANS = {p.name: p for p in vars(digits).values() if isinstance(p, digits.Plan)}
FULL = ("digits70seq", "digits49seq")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRSLIB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=PLANS, scope="module")
def labelled(request):
    return load_dataset(request.param, images=False)


def of_task(split, task):
    return split.labels[split.task == task]


def histogram(labels, length):
    return np.bincount(labels.sum(axis=1), minlength=length + 1)[1:].tolist()


def test_clustering_finds_the_planted_tasks(labelled):
    np.testing.assert_array_equal(labelled.class_task, PLANS[labelled.name].planted_task)


def test_clustering_is_of_the_same_corpus(labelled):
    clustering = DATASETS[labelled.name].clustering()
    assert clustering.class_names == labelled.class_names
    task = curation.tasks_of_images(clustering.labels, labelled.class_task)
    np.testing.assert_array_equal(clustering.labels[task >= 0], labelled.train.labels)


def test_corpus_holds_images_that_the_split_drops(labelled):
    plan = PLANS[labelled.name]
    corpus = digits.draw_corpus(plan, np.random.default_rng(5))
    dropped = curation.tasks_of_images(corpus, plan.planted_task) < 0
    assert dropped.sum() == round(0.15 * (~dropped).sum())


def test_stream_has_the_profile_exactly(labelled):
    plan = PLANS[labelled.name]
    for task, profile in enumerate(plan.profile):
        freq = np.maximum(1, np.array(profile.class_freq) // plan.divisor)
        rows = of_task(labelled.train, task)
        assert rows[:, labelled.class_task == task].sum(axis=0).tolist() == freq.tolist()
        _, counts = profile.scaled(plan.divisor, connected=True)
        assert histogram(rows, len(counts)) == counts.tolist()


@pytest.mark.parametrize("name", FULL)
def test_full_streams_have_the_published_histogram(name):
    plan, dataset = PLANS[name], load_dataset(name, images=False)
    for task, profile in enumerate(plan.profile):
        counts = histogram(of_task(dataset.train, task), len(profile.labels_per_image))
        several = np.array(profile.labels_per_image[1:]) / plan.divisor
        joining = max(several[0], profile.num_classes - 1)
        assert abs(counts[1] - joining) <= 0.5
        np.testing.assert_allclose(counts[2:], several[1:], atol=0.5)


def test_groups():
    for name, expected in (("digits70seq", [18, 38, 14]), ("digits49seq", [13, 15, 21])):
        groups = load_dataset(name, images=False).class_group
        assert [groups.count(group) for group in GROUPS] == expected


def test_class_names_are_all_digits_in_all_colours(labelled):
    digits_used = labelled.num_classes // 7
    expected = {f"{colour} {digit}" for colour in glyphs.COLOURS for digit in range(digits_used)}
    assert len(labelled.class_names) == labelled.num_classes
    assert set(labelled.class_names) == expected


def test_balanced_test_set_has_equally_many_images_of_every_class(labelled):
    plan, split = PLANS[labelled.name], labelled.tests["balanced"]
    expected = 50 if labelled.name in FULL else 4
    assert split.labels.sum(axis=0).tolist() == [expected] * labelled.num_classes
    for task, profile in enumerate(plan.profile):
        mean = of_task(split, task).sum(axis=1).mean()
        published = sum(profile.class_freq) / sum(profile.labels_per_image)
        assert abs(mean - published) < (0.02 if labelled.name in FULL else 0.2)


def test_imbalanced_test_set_follows_the_stream(labelled):
    split = labelled.tests["imbalanced"]
    half = labelled.class_freq / 2
    assert (np.abs(split.labels.sum(axis=0) - half) <= 1).all()
    assert 0.45 < len(split) / len(labelled.train) < 0.55


def test_sizes_of_tasks_keep_the_published_imbalance():
    train = load_dataset("digits49seq", images=False).train
    sizes = np.bincount(train.task)
    assert 9 < sizes[1] / sizes[3] < 10.2  # 18402 : 1926 = 9.6 in NUS-WIDEseq
    assert len(load_dataset("digits70seq", images=False).train) == pytest.approx(
        35072 / 4, rel=0.01
    )


@pytest.mark.parametrize("name", PLANS)
def test_recipe_fits(name):
    recipe, dataset = DATASETS[name].recipe, load_dataset(name, images=False)
    assert validate_schedule(recipe.schedule, dataset.num_tasks) == recipe.schedule
    share = {"COCOseq": 2000 / 35072, "NUS-WIDEseq": 2000 / 48724}[dataset.stands_for]
    assert recipe.memory_size / len(dataset.train) == pytest.approx(share, rel=0.06)


@pytest.mark.parametrize("name", FULL)
def test_images_show_their_labels(name):
    dataset = load_dataset(name)
    for split in (dataset.train, *dataset.tests.values()):
        assert split.images.shape == (len(split), 32, 32, 3)
        assert (split.images.max(axis=(1, 2, 3)) > 150).all()
        ink = (split.images >= glyphs.NOISE).any(axis=3).sum(axis=(1, 2))
        per_image = split.labels.sum(axis=1)
        assert np.all(np.diff([ink[per_image == k].mean() for k in (1, 2, 3, 4)]) > 20)
    # Hue tells the colour: the brightest pixel of a single-label scene is near its palette entry.
    single = np.flatnonzero(dataset.train.labels.sum(axis=1) == 1)[:2000]
    names = [dataset.class_names[row.argmax()].split()[0] for row in dataset.train.labels[single]]
    pixels = dataset.train.images[single].reshape(len(single), -1, 3).astype(float)
    brightest = pixels[np.arange(len(single)), pixels.sum(axis=2).argmax(axis=1)]
    palette = np.array(list(glyphs.COLOURS.values()))
    near = np.abs(brightest[:, None] - palette[None]).sum(axis=2).argmin(axis=1)
    assert np.mean([list(glyphs.COLOURS)[i] == n for i, n in zip(near, names, strict=True)]) > 0.97


@pytest.mark.parametrize("name", PLANS)
def test_labels_are_the_same_with_and_without_images(name):
    with_images, without = load_dataset(name), load_dataset(name, images=False)
    assert without.train.images is None
    np.testing.assert_array_equal(with_images.train.labels, without.train.labels)
    for part, split in without.tests.items():
        assert split.images is None
        np.testing.assert_array_equal(split.labels, with_images.tests[part].labels)


def without_a_test_image(dataset):
    split = dataset.tests["balanced"]
    cut = replace(split, labels=split.labels[1:], task=split.task[1:])
    return replace(dataset, tests={**dataset.tests, "balanced": cut})


def other_test_labels(dataset):
    split = dataset.tests["imbalanced"]
    first, labels = split.task == 0, split.labels.copy()
    labels[first] = split.labels[first][::-1]
    return replace(dataset, tests={**dataset.tests, "imbalanced": replace(split, labels=labels)})


def tasks_renumbered(dataset):
    def turn(split):
        return replace(split, task=dataset.num_tasks - 1 - split.task)

    return replace(
        dataset,
        train=turn(dataset.train),
        tests={part: turn(split) for part, split in dataset.tests.items()},
        class_task=dataset.num_tasks - 1 - dataset.class_task,
    )


@pytest.fixture
def own_fingerprints():
    fingerprint.cache_clear()
    yield
    fingerprint.cache_clear()


@pytest.mark.parametrize("change", [without_a_test_image, other_test_labels, tasks_renumbered])
def test_another_making_of_a_set_has_another_fingerprint(monkeypatch, own_fingerprints, change):
    name = "digits70tiny"
    dataset, config = load_dataset(name, images=False), RunConfig(dataset=name)
    before = fingerprint(name), config.hash
    for made in (change(dataset), dataset):
        entry = replace(DATASETS[name], load=lambda _images, made=made: made)
        monkeypatch.setitem(DATASETS, name, entry)
        fingerprint.cache_clear()
        now = fingerprint(name), config.hash
        assert [a == b for a, b in zip(now, before, strict=True)] == [made is dataset] * 2


def test_fingerprint_tells_the_task_of_a_class_without_images(monkeypatch, own_fingerprints):
    def made(last_task):
        split = Split(None, np.eye(3, dtype=bool)[:2], np.arange(2))
        class_task, groups = np.array([0, 1, last_task]), ("minority",) * 3
        return SequentialDataset("three", split, {"full": split}, tuple("abc"), class_task, groups)

    found = set()
    for last_task in (0, 1):
        entry = replace(DATASETS["digits70tiny"], load=lambda _, task=last_task: made(task))
        monkeypatch.setitem(DATASETS, "digits70tiny", entry)
        fingerprint.cache_clear()
        found.add(fingerprint("digits70tiny"))
    assert len(found) == 2


def test_unknown_name_lists_the_known():
    with pytest.raises(
        ValueError, match="unknown dataset 'x'; known datasets: cocoseq, digits49seq, "
    ):
        load_dataset("x")
