"""The commands ``python -m prslib prepare imbal-mnistseq`` and ``imbal-svhnseq``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prslib.datasets.single_label import SOURCES, Source, load_source
from prslib.paths import data_dir


def add_commands(names: argparse._SubParsersAction) -> None:
    """Add a command for each data set to the names that ``prepare`` knows."""
    for source in SOURCES.values():
        text = f"{source.stands_for} of {source.torchvision}, in $PRSLIB_DATA: {source.files}"
        parser = names.add_parser(source.name, help=text, description=text)
        parser.add_argument(
            "--download", action="store_true", help="fetch with torchvision what is not there"
        )
        parser.set_defaults(command=run_command, source=source)


def run_command(options: argparse.Namespace) -> int:
    """Download where asked to, check the files and say what the stream holds; 1 on bad input."""
    source = options.source
    try:
        if options.download:
            download(source, data_dir(f"{source.name}: {source.files}"))
        dataset = load_source(source, images=True)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    counts = " ".join(map(str, dataset.class_freq.tolist()))
    print(f"{source.name}: {len(dataset.train)} training images, {counts} of the classes 0 to 9")
    print(f"{source.name}: {len(dataset.tests['full'])} test images")
    return 0


def download(source: Source, folder: Path) -> None:
    """Fetch the original files with torchvision, which checks their sums.

    Parameters
    ----------
    source : Source
        Which data set.
    folder : Path
        Where torchvision keeps it.

    Raises
    ------
    ImportError
        If torchvision is not installed.
    RuntimeError
        If a file cannot be fetched.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise ImportError(
            "the download needs torchvision, which is not installed; `pip install torchvision`, or "
            f"put there yourself {source.files}"
        ) from error
    for part in source.parts:
        getattr(datasets, source.torchvision)(folder, download=True, **part)
