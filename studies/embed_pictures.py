"""Make mdiseq and clipartseq: features of icons and of clip art, from their packages.

Run ``python studies/embed_pictures.py mdiseq --packages DIR``, where DIR contains the
unpacked package, or the same with ``clipartseq`` and its two packages. It takes some minutes
on one core. These commands fetch and unpack the packages::

    npm pack @mdi/svg@7.4.47 && tar -xf mdi-svg-7.4.47.tgz -C DIR
    apt-get download openclipart-png=1:0.18+dfsg-19 openclipart-svg=1:0.18+dfsg-19
    for file in openclipart-*.deb; do dpkg-deb -x $file DIR; done  # Debian 12

The script counts the arrays that equal the checkout's, and writes the new file, mdiseq.npz
or clipartseq.npz, to the working directory. It needs
``pip install -e '.[laptop]' resvg-py==0.5.0``.

These rules were fixed before any run was scored:

- **Pictures.** Icons are drawn black on white, 224 x 224; clip art is put on white and
  scaled to 256 x 256, as are cocoseq-mini's images. Pictures with identical pixels are
  merged, with the labels of all. Icons have the tags of meta.json; clip art has the
  keywords (dc:subject) of its SVG in lower case, without `SAY_NOTHING`. The folder `shapes`
  (with `shapes/stars`) and three pictures of over 200 million pixels are left out.
- **Siblings.** Icons with the same baseIconId form a family, and so does clip art in one
  folder if the names differ only in a number. Families that share identical pictures are
  joined.
- **Tasks.** Algorithm 2 with each power of ten from 1 to 1e-8 as beta and two to six
  tasks. Among the settings that leave out less than a third of the pictures, the most
  even one is chosen: its largest task has the smallest share of the pictures.
- **Classes.** A class needs `LEAST` pictures, before and after pictures that span tasks are
  removed: ten for the balanced test, because the paper has 100 for a stream ten times as
  long, and ten for the stream. A class is also removed if, after the split, it has fewer
  than `LEAST_IN_STREAM` pictures in the stream (in proportion to the paper's smallest
  class, 49 of 35,072), or fewer than `LEAST_IN_TEST` in the balanced test.
- **Tests.** A family with more than half of a class stays in the stream. Of the remaining
  families, a random 30 % is the imbalanced test, "imbalanced". "balanced" has ten pictures
  of every class and few further ones of any class (`curation.draw_even`). They are drawn
  from these families first, and then from small families of the stream, whose other members
  are removed from it. Likewise, the paper (Appendix) draws from the training half what the
  test half lacks.
"""

import argparse
import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from clusters import choose_clusters, keep_in_tasks, number_by_size, search_clusters
from embed_features import find_scale, to_bytes
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from tqdm import tqdm

from prslib.datasets import curation, features
from prslib.datasets.arrays import RESOLUTION, read_arrays
from prslib.datasets.prepared import Selection, order_splits
from prslib.paths import DATA
from prslib.rounding import set_deterministic

# (N,)
Rows = np.ndarray
LEAST = 20
LEAST_IN_STREAM = 5
LEAST_IN_TEST = 8
PER_CLASS = 10
TEST_SHARE = 0.3
SEED = 20201126
# the paper's 200 and 900 of 35,072
MINORITY_BELOW = 200 / 35072
MAJORITY_FROM = 900 / 35072
SUBJECT = "{http://purl.org/dc/elements/1.1/}subject"
# keywords of the collection and of an author
SAY_NOTHING = {
    *("11", "architetto francesco rollandin", "creation", "hash"),
    *("miscellany", "openclipart", "special", "unsorted"),
}
LEFT_OUT = {
    "computer/microchip_v.2_havok_redh_01.png",
    "signs_and_symbols/stop_sign_miguel_s_nchez_.png",
    "transportation/roadsigns/stop_sign_right_font_mig_.png",
}


class Picture(NamedTuple):
    """One file of a package."""

    name: str
    labels: set[str]
    # more than one if the picture has copies
    families: set[str]
    # uint8 (H, W, 3)
    pixels: np.ndarray


def read_icons(folder: Path) -> Iterator[Picture]:
    """Read the icons that have tags."""
    package = folder / "package"
    icons = json.loads((package / "meta.json").read_text("utf-8"))
    base = {icon["id"]: icon["baseIconId"] for icon in icons}
    for icon in sorted(icons, key=lambda icon: icon["name"]):
        family = icon["id"]
        # some icons are based on an icon that is itself based on another
        while base.get(family, family) != family:
            family = base[family]
        if icon["tags"]:
            svg = (package / "svg" / f"{icon['name']}.svg").read_text("utf-8")
            yield Picture(icon["name"], set(icon["tags"]), {family}, rasterise(svg))


def rasterise(svg: str) -> np.ndarray:
    """Draw an icon black on white, uint8 (224, 224, 3)."""
    # imported here, because nothing else in the project draws SVG
    from resvg_py import svg_to_bytes

    size = {"width": features.SIZE, "height": features.SIZE}
    png = svg_to_bytes(svg, background="white", skip_system_fonts=True, **size)
    return np.array(Image.open(io.BytesIO(png)).convert("RGB"))


def read_clip_art(folder: Path) -> Iterator[Picture]:
    """Read the clip art that has keywords."""
    root = folder / "usr" / "share" / "openclipart"
    pictures, drawings = root / "png", root / "svg"
    for file in sorted(pictures.rglob("*.png"), key=str):
        name = file.relative_to(pictures).as_posix()
        if name.startswith("shapes/") or name in LEFT_OUT:
            continue
        stem = name.removesuffix(".png")
        if keywords := read_keywords(drawings / f"{stem}.svg"):
            family = re.sub(r"[\d_]+$", "", stem)
            yield Picture(name, keywords, {family}, scale(file))


def read_keywords(svg: Path) -> set[str]:
    """Read the keywords of a drawing."""
    subjects = ElementTree.parse(svg).iter(SUBJECT)
    words = [entry.text or "" for subject in subjects for entry in subject.iter()]
    return {" ".join(word.lower().split()) for word in words} - SAY_NOTHING - {""}


def scale(png: Path) -> np.ndarray:
    """Decode a picture, put it on white, and scale it to uint8 (256, 256, 3)."""
    Image.MAX_IMAGE_PIXELS = 200_000_000  # some are large
    size = RESOLUTION, RESOLUTION
    image = Image.open(png).convert("RGBA")
    image = image.resize(size, Image.Resampling.BICUBIC)
    white = Image.new("RGBA", size, "white")
    return np.array(Image.alpha_composite(white, image).convert("RGB"))


def merge(pictures: Iterator[Picture]) -> list[Picture]:
    """Merge pictures with identical pixels; the first gets the labels of all."""
    merged: dict[bytes, Picture] = {}
    for picture in tqdm(pictures, "pictures", unit="picture"):
        digest = hashlib.sha256(picture.pixels).digest()
        first = merged.setdefault(digest, picture)
        first.labels.update(picture.labels)
        first.families.update(picture.families)
    return list(merged.values())


def number_families(pictures: list[Picture]) -> Rows:
    """Number the families; a picture with copies joins the families of its copies."""
    pairs = [
        (row, key) for row, picture in enumerate(pictures) for key in picture.families
    ]
    rows, keys = np.array([row for row, _ in pairs]), [key for _, key in pairs]
    columns = np.unique(keys, return_inverse=True)[1] + len(pictures)
    size = int(columns.max()) + 1
    joined = coo_array((np.ones(len(rows)), (rows, columns)), (size, size))
    return connected_components(joined, directed=False)[1][: len(pictures)]


class Split(NamedTuple):
    """Rows of the stream and of both tests."""

    train: Rows
    balanced: Rows
    imbalanced: Rows


def split(labels: np.ndarray, family: Rows, rng: np.random.Generator) -> Split:
    """Draw the tests; the stream is every picture without a sibling in a test."""
    number, size = np.unique(family, return_inverse=True, return_counts=True)[1:]
    of_class = np.zeros((len(size), labels.shape[1]), dtype=np.int64)
    np.add.at(of_class, number, labels)
    is_small = (of_class <= labels.sum(axis=0) / 2).all(axis=1)
    is_test = (is_small & (rng.random(len(size)) < TEST_SHARE))[number]
    pool = np.flatnonzero(is_small[number])
    reserve = np.where(is_test, 0, size[number])[pool]
    balanced = pool[curation.draw_even(labels[pool], PER_CLASS, rng, reserve)]
    is_tested = is_test | np.isin(family, family[balanced])
    return Split(np.flatnonzero(~is_tested), balanced, np.flatnonzero(is_test))


def select(
    pictures: list[Picture],
) -> tuple[Selection, Rows, dict[str, np.ndarray], str]:
    """Choose classes, tasks and splits; return rows, the corpus, and a summary as text."""
    counted = [label for picture in pictures for label in picture.labels]
    words, counts = np.unique(counted, return_counts=True)
    names = words[counts >= LEAST]
    labels = np.array(
        [[name in picture.labels for name in names] for picture in pictures]
    )
    corpus = labels[labels.any(axis=1)]
    clusters = choose_clusters(search_clusters(corpus, tuple(names.tolist())))
    group = clusters.group_of_class

    def is_large(rows: np.ndarray) -> np.ndarray:
        return labels[rows].sum(axis=0) >= LEAST

    rows, stays = keep_in_tasks(labels, group, is_large)
    family = number_families(pictures)[rows]
    rng = np.random.default_rng(SEED)
    parts = split(labels[rows][:, stays], family, rng)
    in_stream = labels[rows[parts.train]].sum(axis=0)
    in_test = labels[rows[parts.balanced]].sum(axis=0)
    stays &= (in_stream >= LEAST_IN_STREAM) & (in_test >= LEAST_IN_TEST)
    train, balanced, imbalanced = (
        part[labels[rows[part]][:, stays].any(axis=1)] for part in parts
    )
    order, bounds = order_splits(train, balanced, imbalanced)
    bounds_of_groups = len(train) * MINORITY_BELOW, len(train) * MAJORITY_FROM
    groups = curation.class_groups(in_stream[stays], *bounds_of_groups)
    class_task = number_by_size(group, stays)[stays]
    chosen = labels[rows[order]][:, stays]
    selection = Selection(
        files=np.array([pictures[row].name for row in rows[order]]),
        labels=chosen,
        task=class_task[chosen.argmax(axis=1)],
        bounds=bounds,
        class_names=names[stays],
        class_task=class_task,
        class_group=np.array(groups),
    )
    more = {"corpus": corpus, "corpus_names": names, "family": family[order]}
    text = (
        f"{clusters.n_tasks} groups, beta {clusters.beta:g}, {clusters.lost:.1%} lost"
    )
    return selection, rows[order], more, text


def make(name: str, folder: Path, made: Path) -> str:
    """Write the data file from the packages in a folder; return a summary as text."""
    pictures = merge(READERS[name](folder))
    selection, rows, more, text = select(pictures)
    chosen = tqdm(rows.tolist(), "features", unit="picture")
    values = np.array([features.embed(pictures[row].pixels) for row in chosen])
    column_scale = find_scale(values)
    _, weights = features.frozen_network()
    about = {"source": SOURCES[name], "clusters": text}
    about |= {"network": features.NETWORK, "layer": "pooled", "weights": weights}
    more["about"] = np.array(json.dumps(about))
    selection.save(
        made, features=to_bytes(values, column_scale), scale=column_scale, **more
    )
    return text


READERS = {"mdiseq": read_icons, "clipartseq": read_clip_art}
SOURCES = {
    "mdiseq": "@mdi/svg 7.4.47 (npm); Apache 2.0, Pictogrammers and its contributors",
    "clipartseq": "openclipart-png 0.18+dfsg-19 and openclipart-svg 0.18+dfsg-19 (Debian); "
    "public domain",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("name", choices=READERS)
    parser.add_argument("--packages", type=Path, required=True)
    options = parser.parse_args()
    set_deterministic()
    made = Path(f"{options.name}.npz")
    print(make(options.name, options.packages, made))
    first, second = read_arrays(made), read_arrays(DATA / made)
    same = [name for name in first if np.array_equal(first[name], second[name])]
    print(f"{len(same)} of {len(first)} arrays equal the embedded ones")
    print(made)


if __name__ == "__main__":
    main()
