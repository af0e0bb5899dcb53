"""Sizes of data sets and settings of runs on pages are those of files and recipes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from told import IN_WORDS, ROOT, contains, table_of

from prslib import DATASETS, SAMPLERS, load_dataset
from prslib.datasets import GROUPS, curation, reuters
from prslib.models import networks
from prslib.report.answers import STREAMS

INDEX = "docs/index.md"
REAL_COCO = "docs/real_coco.md"
REUTERS = "docs/reuters.md"
OTHERS = "docs/other_streams.md"
CHOOSING = "docs/samplers/index.md"
SUMMARY = "docs/report/README.md"
SPEED = "docs/speed.md"
LIMITATIONS = "docs/limitations.md"
LICENCES = "docs/licences.md"
METRICS = "docs/metrics.md"
RULES = "docs/what_holds.md"
MAIN, LEDGER, TAIL, DATA = (
    f"notebooks/{name}.py"
    for name in ("main_results", "ledger", "tail_forgetting", "datasets")
)
CONTENTS = {  # of embedded files
    "cocoseq_mini": "images",
    "cocoseq_open": "further images",
    "reutersseq": "documents",
    "mdiseq": "icons",
    "clipartseq": "pictures",
}
CUTS = {f"cap{cap}": cap for cap in reuters.CAPS[:-1]} | {"tiny": reuters.CAPS[-1]}
CUTS |= dict.fromkeys(f"part{size}" for size in (5010, 3292, 1981, 893))
DIGITS = {  # side of a picture and number of classes
    "digits70seq": "COCOseq | scenes of {side} x {side} pixels with coloured digits; "
    "{classes} classes",
    "digits49seq": "NUS-WIDEseq | the same kind of scenes; {classes} classes",
    "imbal-digits": "Imbal-MNISTseq | single grey digits of {side} x {side} pixels; "
    "{classes} classes",
    "imbal-colour-digits": "Imbal-SVHNseq | single coloured digits of {side} x {side} "
    "pixels; {classes} classes",
}
SHARES = {  # of the paper's images, after these words of notebooks
    "datasets": "`cocoseq-mini` contains",
    "feature_tsne": "`cocoseq-mini`,",
    "gradient_variance": "`cocoseq-mini`,",
    "imbalanced_test": "`cocoseq-mini`:",
    "memory_distribution": "shows",
    "rho_sweep": "`cocoseq-mini`:",
    "schedules_and_memory": "`cocoseq-mini`:",
    "tail_forgetting": "`cocoseq-mini`,",
}


def sizes():
    """Yield the sizes of the paper's streams and of our part of COCOseq."""
    papers = table_of("datasets_sizes", "paper").set_index("dataset")
    for name, row in papers.iterrows():
        title = {"cocoseq": "COCOseq", "nuswideseq": "NUS-WIDEseq"}[name]
        cells = [str(row[column]) for column in ["stream", "tasks", *GROUPS]]
        yield DATA, f"| {title} | {' | '.join(cells)} |"
    row = table_of("datasets_sizes", "seeds").set_index("dataset").loc["cocoseq-mini"]
    whole = papers.loc["cocoseq"]
    ours, stream = f"{row['stream']:,}", f"{whole['stream']:,}"
    alike, imbalanced, further = row.filter(like="test, ").astype(int)
    of_paper = whole.filter(like="test, ").astype(int)
    yield DATA, f"its released files contain {of_paper.iloc[0]}."
    yield REAL_COCO, f"| training | {ours} | {stream} |"
    yield REAL_COCO, f"| balanced test | {alike} | {of_paper.iloc[0]:,} |"
    yield REAL_COCO, f"| imbalanced test | {imbalanced} | {of_paper.iloc[1]:,} |"
    yield REAL_COCO, f"| `balanced` | {alike} | images of the released"
    yield REAL_COCO, f"| `imbalanced` | {imbalanced} | images of the released"
    yield REAL_COCO, f"| `open` | {further:,} |"
    yield LIMITATIONS, f"test set of COCO, which has {alike} images"
    yield RULES, f"`cocoseq-mini` has only {alike} images"
    yield MAIN, f"scores on {alike} images of the paper's balanced"
    yield "notebooks/deviations.py", f"`cocoseq-mini`, {alike} images of the paper's"
    yield (
        "notebooks/imbalanced_test.py",
        f"The test uses {imbalanced} images of COCOseq",
    )
    yield TAIL, f"measured on {further:,} further images of COCO"
    for page in (LEDGER, MAIN):
        yield page, f"{ours} of COCOseq's {stream} training images"
    yield "README.md", f"COCO consists of {ours} of the {stream} training images"
    yield INDEX, f"samples after a stream of {ours} COCO images"
    yield SPEED, f"ResNet-101 on photographs ({ours} training images of COCO)"
    share = f"{100 * row['stream'] / whole['stream']:.0f} %"
    yield SUMMARY, f"`cocoseq-mini`, {share} of the training images of the paper's"
    yield REAL_COCO, f"version of COCOseq with {share} of the training images"
    yield LIMITATIONS, f"contains {share} of COCOseq's training images"
    streams = IN_WORDS[len(STREAMS)]
    words = f"({share} of the paper's COCO training images,"
    yield "paper.md", f"{streams} real streams {words}"
    for name, words in SHARES.items():
        yield f"notebooks/{name}.py", f"{words} {share} of"
    labels, classes = f"{whole['labels per sample']:.2f}", whole["classes"]
    yield (
        "notebooks/walkthrough.py",
        f"has {stream} images of {classes} classes with {labels} labels per image",
    )
    relative = DATASETS["cocoseq"].recipe.memory_size, round(whole["stream"], -3)
    words = "same relative size as in the paper, {:,} for {:,} samples"
    yield "notebooks/walkthrough.py", words.format(*relative)
    rho = {name: DATASETS[name].recipe.rho for name in STREAMS}
    yield SUMMARY, f"near 0 ({rho.pop('cocoseq-mini')} on COCO, otherwise 0)"
    assert set(rho.values()) == {0}
    table = table_of("memory_distribution_distance", "paper")
    seeds = table.query("method == 'PRS'").groupby("dataset")["seed"].nunique()
    for name, row in papers.iterrows():
        recipe = DATASETS[name].recipe
        title = f"{recipe.memory_size:,} of {row['stream']:,} images, $\\rho = "
        yield REAL_COCO, f"{title}{recipe.rho}$, {seeds[name]} seeds"
    away = table.pivot_table("to equal", "dataset", "method").round(1)
    coco, nus = away.loc["cocoseq"], away.loc["nuswideseq"]
    yield REAL_COCO, f"memory of CRS are {coco['CRS']} points away from equal shares"
    yield REAL_COCO, f"in the memory of PRS {coco['PRS']} points"
    yield REAL_COCO, f"the distances are {nus['CRS']} and {nus['PRS']} points"


def settings():
    """Yield settings of runs, which recipes and tables know."""
    recipes = {name: entry.recipe for name, entry in DATASETS.items()}
    memory = {name: recipe.memory_size for name, recipe in recipes.items()}
    coco, paper = memory["cocoseq-mini"], f"{memory['cocoseq']:,}"
    yield "README.md", f"a memory of {paper} samples keeps of each class of COCOseq"
    yield SPEED, f"a full memory of {paper} slots and the labels of COCOseq"
    for page in (INDEX, "paper.md"):
        yield page, f"PRS and {IN_WORDS[len(SAMPLERS) - 1]} other samplers"
    yield INDEX, f"What a memory of {coco} samples keeps"
    yield INDEX, f"class in a memory of {coco} samples after"
    same = "which is the same share of the stream as the"
    yield REAL_COCO, f"The replay memory holds {coco} images, {same} paper's {paper}."
    (width,) = networks.head.keywords["widths"]
    yield REAL_COCO, f"The chosen width is {width};"
    yield (
        "notebooks/feature_tsne.py",
        f"features are the {width} values that the trained",
    )
    yield "docs/configuration.md", f"hidden layer of {width} units on features"
    yield REAL_COCO, f"a step size of {recipes['cocoseq-mini'].learning_rate}, which"
    resamples = recipes["cocoseq-mini"].test_resamples
    yield REAL_COCO, f"are resampled {resamples} times with replacement"
    yield SPEED, f"also scored on {resamples} resamples"
    share = 100 * memory["cocoseq"] / table_of("datasets_sizes", "paper")["stream"][0]
    yield "docs/own_data.md", f"The memory holds {share:.1f} % of the stream, as in the"
    underflows = int((np.exp(-np.arange(2000.0)) == 0).argmax())
    for words in ("a class has at least {} samples", "all have {} images or more"):
        yield "notebooks/deviations.py", words.format(underflows)
    text = memory["reutersseq"]
    yield REUTERS, f"The memory holds {text} documents, {same} paper's {paper} samples"
    yield REUTERS, f"keep its memory of {text} documents"
    yield REUTERS, f"Its memory holds {memory['reutersseq-tiny']} documents"
    pictures = f"{memory['mdiseq']} icons or {memory['clipartseq']} clip art pictures"
    yield OTHERS, f"The memory holds {pictures}, {same} {paper} samples in the paper's"
    runs = {
        f"{recipes[name].batch_size} new and {recipes[name].replay_batch_size} replayed "
        f"samples per step. The memory holds "
        f"{100 * memory[name] / len(load_dataset(name).train):.0f} % of the stream"
        for name in STREAMS
    }
    (words,) = runs
    recipe = recipes["cocoseq-mini"]
    batch = f"{recipe.batch_size} new images and {recipe.replay_batch_size} images"
    yield MAIN, f"on a batch of {batch} drawn from memory"
    for page in ("README.md", CHOOSING):
        yield page, f"frozen features in one pass, with {words}"
    assert 0.45 < text / len(load_dataset("reutersseq-cap30").train) < 0.55
    yield "README.md", "% of the stream, but half of the"
    yield CHOOSING, "The memory holds half of the stream."
    draws = IN_WORDS[reuters.DRAWS]
    yield CHOOSING, f"the values are means over {draws} draws of the stream"
    yield REUTERS, f"Each stream is drawn {draws} times"
    yield "notebooks/when_it_pays.py", f"each cap and each part is drawn {draws} times"
    table = table_of("schedules_and_memory_sizes", "seeds").set_index("dataset")
    least, usual, most = sorted(set(table.loc["cocoseq-mini", "memory_size"]))
    assert usual == coco
    also = f"samples, and memories of {least} and {most} samples are also tested"
    yield "notebooks/schedules_and_memory.py", f"`cocoseq-mini` holds {coco} {also}"
    papers = memory["cocoseq"]
    half = papers * least // coco
    yield LEDGER, f"{least} of {coco} samples corresponds to {half} of {papers}."
    yield TAIL, f"The memory of {coco // 2} samples is half of the standard size"
    yield TAIL, f"{half} is half of the paper's standard size of {papers}."
    yield TAIL, f"They were measured with a memory of {papers}, which is twice as large"
    labels = load_dataset("cocoseq-mini").train.labels
    steps = len(labels) / recipes["cocoseq-mini"].batch_size
    yield LEDGER, f"is trained for only about {round(steps, -2):.0f} steps"
    classes = labels.shape[1]
    yield CHOOSING, f"COCO's features and {least} slots for {classes} classes"
    about = IN_WORDS[round(coco * labels.sum() / labels.size)]
    yield CHOOSING, f"{coco} slots hold about {about} labels for each of the {classes}"
    yield CHOOSING, f"means over seeds with {coco} samples in memory"


def streams():
    """Yield what the embedded files contain."""
    entries, widths = {}, {}
    for name, words in CONTENTS.items():
        with np.load(ROOT / "data" / f"{name}.npz") as file:
            number, width = file["features"].shape
        unit = words.split()[-1].removesuffix("s")
        yield LICENCES, f"{width:,} features per {unit} of {number:,} {words}"
        entries[name] = number
        widths[name] = f"{width:,}"
    both = entries["cocoseq_mini"] + entries["cocoseq_open"]
    yield "docs/quickstart.md", f"the features of {both:,} COCO images"
    yield SPEED, f"stay on the card | H100: {entries['cocoseq_mini']:,} images"
    yield LICENCES, f"from the {len(load_digits().target):,} handwritten digits"
    width = widths["cocoseq_mini"]
    yield REAL_COCO, f"the labels and {width} one-byte features"
    yield OTHERS, f"files contain {width} features of each picture"
    yield "docs/extending/sampler.md", f"which is {width} on `cocoseq-mini`"
    yield "notebooks/feature_tsne.py", f"from the {width} features of a frozen network"
    width = widths["reutersseq"]
    yield REUTERS, f"the number, the topics and {width} features of each document"
    yield REUTERS, f"reduces TF-IDF vectors to {width} components"
    tests = load_dataset("cocoseq-mini").tests
    per_class = tests["balanced"].labels.sum(axis=0)
    ends = " to ".join(IN_WORDS[n] for n in (per_class.min(), per_class.max()))
    yield REAL_COCO, f"{ends} images per class"
    yield "notebooks/feature_tsne.py", f"a class has only {ends} test images"
    on_average = round(tests["open"].labels.sum(axis=1).mean())
    yield REAL_COCO, f"they have {IN_WORDS[on_average]} labels on average"
    tasks = [
        IN_WORDS[max(load_dataset(name).class_task) + 1]
        for name in ("mdiseq", "clipartseq")
    ]
    tests = [load_dataset(name).tests["balanced"] for name in ("mdiseq", "clipartseq")]
    (usual,) = {int(np.median(test.labels.sum(axis=0))) for test in tests}
    yield OTHERS, f'"balanced" has {IN_WORDS[usual]} pictures of most classes'
    icons = load_dataset("mdiseq", images=False)
    is_frequent = np.array(icons.class_group) == "majority"
    shares = [
        100 * counts[is_frequent].sum() / counts.sum()
        for counts in (icons.tests["imbalanced"].labels.sum(axis=0), icons.class_freq)
    ]
    share = f"{shares[0]:.0f} % of its labels belong to majority classes"
    yield OTHERS, f"{share}, against {shares[1]:.0f} % in the stream"
    yield OTHERS, f"This gives {tasks[0]} tasks of icons and {tasks[1]} tasks of clip"
    for name, words in DIGITS.items():
        data = load_dataset(name)
        side = data.train.inputs.shape[1]
        words = words.format(side=side, classes=data.num_classes)
        yield OTHERS, f"| `{name}` | {words}"
    totals = [
        len(load_dataset(name).train)
        for name in ("imbal-digits", "imbal-colour-digits")
    ]
    yield "notebooks/single_label.py", f"the paper's {totals[0]} and {totals[1]}."
    for name in ["reutersseq", *(f"reutersseq-{cut}" for cut in CUTS)]:
        data = load_dataset(name)
        counts = data.train.labels.sum(0)
        test = len(data.tests["imbalanced"].labels)
        most, least = f"{counts.max():,}", counts.min()
        size = f"{len(data.train.labels):,}"
        row = f"| `{name}` | {size} | {most} | {least} | {test:,} |"
        cap = CUTS.get(name.removeprefix("reutersseq-"))
        yield REUTERS, f"{row} the largest classes, to about {cap:,} |" if cap else row
    data = load_dataset("reutersseq")
    classes, documents = (
        np.bincount(tasks) for tasks in (data.class_task, data.train.task)
    )
    pairs = [
        f"({number}; {count:,})"
        for number, count in zip(classes, documents, strict=True)
    ]
    tasks = IN_WORDS[len(classes)]
    yield REUTERS, f"newswire articles from 1987, ordered in {tasks} tasks"
    yield REUTERS, f"clusters the labels of the stream into {tasks} tasks, as in"
    yield REUTERS, f"farm products ({classes[0]} classes, {documents[0]} documents)"
    yield REUTERS, f"metals, money and earnings {pairs[1]}, acquisitions, energy"
    yield REUTERS, f"shipping {pairs[2]}, and the economy {pairs[3]}"
    few, many = curation.class_groups.__defaults__
    limits = f"fewer than {few} samples, *majority* classes {many} or more"
    yield METRICS, f"*minority* classes have {limits}"
    few, many = reuters.MINORITY_BELOW, reuters.MAJORITY_FROM
    yield METRICS, f"On Reuters, for example, they are {few} and {many}."
    limits = f"fewer than {few} documents in the stream are minority, and classes with"
    yield REUTERS, f"Classes with {limits} {many} or more are majority"
    groups = [f"{data.class_group.count(group)} {group}" for group in GROUPS[::-1]]
    yield REUTERS, f"This gives {groups[0]}, {groups[1]} and {groups[2]} classes"
    alike, as_it_comes = data.tests["balanced"], data.tests["imbalanced"]
    yield REUTERS, f"contains all {len(as_it_comes):,} official test documents"
    most = IN_WORDS[alike.labels.sum(axis=0).max()]
    yield REUTERS, f"contains {len(alike)} of them, at most {most} per class"
    parts = f"{len(data.train):,} for training and {len(as_it_comes):,} for testing"
    yield MAIN, f"with their topics ({parts})"
    ratio = data.class_freq.max() / data.class_freq.min()
    yield MAIN, f"The largest class has {ratio:.0f} times as many articles"
    yield REUTERS, f"The classes are the {data.num_classes} topics"
    is_frequent = np.array(data.class_group) == "majority"
    counts = as_it_comes.labels.sum(axis=0)
    share = 100 * counts[is_frequent].sum() / counts.sum()
    yield REUTERS, f'{share:.0f} % of the labels of "imbalanced" belong to majority'


@pytest.mark.parametrize("tell", [sizes, settings, streams])
def test_a_page_says_what_the_data_are(tell):
    missing = [pair for pair in tell() if not contains(*pair)]
    assert missing == []
