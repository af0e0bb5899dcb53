"""Make the single-label streams: thinned MNIST and SVHN, and their stand-ins."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from prslib.datasets import curation, scenes
from prslib.datasets.base import Entry, Recipe, SequentialDataset, Split
from prslib.paths import PACKAGE, data_dir

Part = tuple[
    np.ndarray | None, np.ndarray
]  # uint8 (N, H, W, channels), and digits int64 (N,)

CLASSES = 10
RELEASED = (
    PACKAGE / "datasets" / "embedded" / "imbal_ids.npz"
)  # it names the authors' repository
TEST_PER_CLASS = 200  # of the stand-ins
MNIST_FILES = (
    "mnist.npz (Keras), or MNIST/raw/train-images-idx3-ubyte and its like (torchvision)"
)
SVHN_FILES = "train_32x32.mat and test_32x32.mat (torchvision), there or in SVHN/"
COMPRESSED = 15  # MATLAB's code of such a variable


def read_mnist(folder: Path, images: bool = True) -> dict[str, Part]:
    """Read "train" and "test" from Keras's ``mnist.npz`` or torchvision's ``MNIST/raw/``."""
    if (folder / "mnist.npz").is_file():
        return _checked(_from_keras(folder / "mnist.npz", images), folder, (28, 28, 1))
    raw = folder / "MNIST" / "raw"
    parts = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        files = [f"{prefix}-{what}-ubyte" for what in ("images-idx3", "labels-idx1")]
        pixels, digits = (
            _first_of(
                [raw / name, raw / f"{name}.gz"], folder, "imbal-mnistseq", MNIST_FILES
            )
            for name in files
        )
        parts[part] = (
            _read_idx(pixels, 3)[..., None] if images else None,
            _read_idx(digits, 1),
        )
    return _checked(parts, folder, (28, 28, 1))


def _from_keras(path: Path, images: bool) -> dict[str, Part]:
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {
                part: (
                    file[f"x_{part}"][..., None] if images else None,
                    file[f"y_{part}"],
                )
                for part in ("train", "test")
            }
    except Exception as error:  # whatever a damaged file leads to
        raise _damaged(path, error) from error


def _first_of(paths: list[Path], folder: Path, dataset: str, files: str) -> Path:
    for path in paths:
        if path.is_file():
            return path
    name = paths[0].relative_to(folder)
    raise FileNotFoundError(
        f"{name.as_posix()} is missing in {folder}; put there {files}, or run "
        f"`python -m prslib prepare {dataset} --download`"
    )


def _read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read the array of bytes in an idx file: magic number, sizes (big endian), bytes."""
    try:
        content = (
            gzip.decompress(path.read_bytes())
            if path.suffix == ".gz"
            else path.read_bytes()
        )
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, error) from error
    head = 4 * (dimensions + 1)
    numbers = (
        np.frombuffer(content[:head], dtype=">i4").tolist()
        if len(content) >= head
        else []
    )
    if numbers[:1] != [0x0800 + dimensions]:
        raise _damaged(path, f"no idx file of {dimensions} dimensions")
    shape = numbers[1:]
    if len(content) != head + np.prod(shape):
        raise _damaged(
            path, f"{len(content) - head} bytes for an array of shape {tuple(shape)}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=head).reshape(shape)


def read_svhn(folder: Path, images: bool = True) -> dict[str, Part]:
    """Read "train" and "test" from torchvision's SVHN files, in the folder or in ``SVHN/``."""
    parts = {}
    for part in ("train", "test"):
        name = f"{part}_32x32.mat"
        paths = [folder / name, folder / "SVHN" / name]
        path = _first_of(paths, folder, "imbal-svhnseq", SVHN_FILES)
        try:
            content = _read_mat(path, ["X", "y"] if images else ["y"])
            pixels = (
                np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
                if images
                else None
            )
            digits = content["y"].ravel()
        except Exception as error:  # whatever a damaged file leads to
            raise _damaged(path, error) from error
        parts[part] = (
            pixels,
            np.where(digits == 10, 0, digits),
        )  # the files call 0 class 10
    return _checked(parts, folder, (32, 32, 3))


def _read_mat(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Read variables of a compressed MATLAB 5 file once all checksums are right."""
    # scipy's reader ends the process where the sizes in a damaged file are wrong.
    from scipy.io import loadmat

    content, start = memoryview(path.read_bytes()), 128
    if content[124:128] != b"\0\1IM":
        raise ValueError("no MATLAB 5 file")
    while start < len(content):
        kind, size = np.frombuffer(content[start : start + 8], "<u4").tolist()
        start += 8 + size
        if kind != COMPRESSED or start > len(content):
            raise ValueError("not compressed, or cut off")
        zlib.decompress(content[start - size : start])
    return loadmat(path, variable_names=names)


def _checked(
    parts: dict[str, Part], folder: Path, shape: tuple[int, ...]
) -> dict[str, Part]:
    """Return the parts with int64 digits once they fit together."""
    for part, (pixels, digits) in parts.items():
        are_digits = digits.dtype.kind in "iuf" and np.isin(digits, range(10)).all()
        if digits.ndim != 1 or not are_digits:
            raise ValueError(
                f"expected digits 0 to 9 as labels of {part!r} in {folder}, got others"
            )
        if pixels is None:
            continue
        if pixels.dtype != np.uint8 or pixels.shape != (len(digits), *shape):
            raise ValueError(
                f"expected uint8 images of shape {(len(digits), *shape)} in {folder} for {part!r}, "
                f"one a label, got {pixels.dtype} {pixels.shape}; download the data set again"
            )
    return {
        part: (pixels, digits.astype(np.int64))
        for part, (pixels, digits) in parts.items()
    }


def _damaged(path: Path, why: object) -> ValueError:
    return ValueError(
        f"{path} cannot be read ({why}): truncated or no such file; delete it and download it again"
    )


@dataclass(frozen=True)
class Source:
    """Describe a single-label data set that a user downloads."""

    name: str  # of the thinned data set
    stands_for: str
    torchvision: str  # name of the original in `torchvision.datasets`
    parts: tuple[dict, ...]  # arguments there that fetch all files
    files: str  # what a user puts where, for errors
    shape: tuple[int, int, int]  # height, width, channels
    read: Callable[
        [Path, bool], dict[str, Part]
    ]  # takes a folder, and whether images are wanted
    train_freq: tuple[int, ...]  # images of each class in the original
    test_freq: tuple[int, ...]
    released: bool = (
        True  # keep the training images that the authors kept, else each class's first
    )

    @property
    def train_counts(self) -> np.ndarray:
        """Images of each class in the thinned stream, int64 (C,)."""
        return curation.pareto_counts(np.array(self.train_freq))


MNIST = Source(
    name="imbal-mnistseq",
    stands_for="Imbal-MNISTseq",
    torchvision="MNIST",
    parts=({"train": True},),
    files=MNIST_FILES,
    shape=(28, 28, 1),
    read=read_mnist,
    train_freq=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    test_freq=(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
)
SVHN = Source(
    name="imbal-svhnseq",
    stands_for="Imbal-SVHNseq",
    torchvision="SVHN",
    parts=({"split": "train"}, {"split": "test"}),
    files=SVHN_FILES,
    shape=(32, 32, 3),
    read=read_svhn,
    train_freq=(4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659),
    test_freq=(1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595),
)
FIRST = [replace(s, name=f"{s.name}-first", released=False) for s in (MNIST, SVHN)]
SOURCES = {source.name: source for source in (MNIST, SVHN, *FIRST)}


def load_source(source: Source, images: bool) -> SequentialDataset:
    """Read a downloaded data set and thin its training images; Appendix, single-label data."""
    parts = source.read(data_dir(f"{source.name}: {source.files}"), images)
    for part, expected in (("train", source.train_freq), ("test", source.test_freq)):
        found = np.bincount(parts[part][1], minlength=CLASSES).tolist()
        if found != list(expected):
            raise ValueError(
                f"expected the original {part} set of {source.torchvision} with {list(expected)} "
                f"images of the digits 0 to 9, got {found}; download it again"
            )
    pixels, digits = parts["train"]
    kept = curation.first_of_each_class(digits, source.train_counts)
    if source.released:
        kept = released_images(source)
        if np.bincount(digits[kept]).tolist() != source.train_counts.tolist():
            raise ValueError(
                f"expected the training images of {source.torchvision} in their original order, "
                "in which the released ones are counted, got another; download them again"
            )
    train = None if pixels is None else pixels[kept], digits[kept]
    return one_class_a_task(source.name, train, parts["test"], source.stands_for)


def released_images(source: Source) -> np.ndarray:
    """Return which training images the authors kept, int64 (N,), rising."""
    with np.load(RELEASED) as file:
        return file[source.torchvision.lower()].astype(np.int64)


def at_hand(names: Iterable[str]) -> list[str]:
    """Leave out the data sets whose files are not in ``PRSLIB_DATA``; fail if none is left."""
    found, missing = [], None
    for name in names:
        try:
            if name in SOURCES:
                source = SOURCES[name]
                source.read(data_dir(f"{name}: {source.files}"), False)
            found.append(name)
        except FileNotFoundError as error:
            missing = missing or error
    if not found and missing:
        raise missing
    return found


def one_class_a_task(
    name: str, train: Part, test: Part, stands_for: str
) -> SequentialDataset:
    """Make a data set in which every class is a task, with the test set "full"."""
    num_classes = int(train[1].max()) + 1
    splits = [
        Split(pixels, classes[:, None] == np.arange(num_classes), classes)
        for pixels, classes in (train, test)
    ]
    freq = np.bincount(train[1], minlength=num_classes)
    return SequentialDataset(
        name=name,
        train=splits[0],
        tests={"full": splits[1]},
        class_names=tuple(map(str, range(num_classes))),
        class_task=np.arange(num_classes),
        # the released code's groups
        class_group=curation.class_groups(freq, 0.1 * freq[0], 0.7 * freq[0]),
        stands_for=stands_for,
    )


def load_stand_in(
    source: Source, colour: bool, divisor: int, name: str, images: bool
) -> SequentialDataset:
    """Make a stand-in, `divisor` times smaller than its source, with a balanced test set."""
    counts = {"train": source.train_counts, "test": TEST_PER_CLASS}
    digits = {
        part: np.repeat(np.arange(CLASSES), count // divisor)
        for part, count in counts.items()
    }
    pixels = (
        scenes.cached_pictures(name, digits, colour)
        if images
        else dict.fromkeys(digits)
    )
    train, test = ((pixels[part], digits[part]) for part in digits)
    return one_class_a_task(name, train, test, source.stands_for)


PAIRS = {
    "schedule": tuple(range(CLASSES)),
    "schedule_drawn": True,
    "tasks_at_once": 2,
    "loss": "cross_entropy",
    "clip_value": 0.5,
    "norm_penalty": 1e-5,
    "test_set": "full",
}
ON_MLP = Recipe(
    model="mlp", memory_size=300, optimizer="sgd", learning_rate=0.01, **PAIRS
)
ON_CONVNET = Recipe(model="convnet", memory_size=500, **PAIRS)
RECIPES = {
    "MNIST": ON_MLP,
    "SVHN": Recipe(model="resnet18", memory_size=500, learning_rate=2e-4, **PAIRS),
}


def _stand_in(name: str, source: Source, divisor: int, recipe: Recipe) -> Entry:
    load = partial(load_stand_in, source, source is SVHN, divisor, name)
    recipe = replace(recipe, memory_size=recipe.memory_size // divisor)
    # its split of the originals into training and test is not the scenes'
    return Entry(load, recipe, tests_on_pretrained=True)


ENTRIES = {
    name: Entry(
        partial(load_source, source),
        RECIPES[source.torchvision],
        relation="paper's" if source.released else "stand-in",
    )
    for name, source in SOURCES.items()
} | {
    "imbal-digits": _stand_in("imbal-digits", MNIST, 1, ON_MLP),
    "imbal-colour-digits": _stand_in("imbal-colour-digits", SVHN, 1, ON_CONVNET),
    "imbal-digits-tiny": _stand_in("imbal-digits-tiny", MNIST, 10, ON_MLP),
    "imbal-colour-digits-tiny": _stand_in(
        "imbal-colour-digits-tiny", SVHN, 20, ON_CONVNET
    ),
}
