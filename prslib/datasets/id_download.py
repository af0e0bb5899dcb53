"""COCOseq's released id files, fetched when asked for and checked byte by byte."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from http.client import HTTPException
from pathlib import Path

# a fixed state of the authors' repository, github.com/cdjkim/PRS
SOURCE = (
    "https://raw.githubusercontent.com/cdjkim/PRS/a29a99567663365116d5dd58ae7414b6cfe9d94a/"
    "dataset/data_source/COCOseq/ids"
)
CHECKSUMS = {  # SHA-256
    "train_task0_id_coco.json": "6609034efbccb21d70f8ea237ddfb75e945aeaddedebb7b69f72743bbb5c4fd6",
    "train_task1_id_coco.json": "48a85b0971dae0dcbd9eaedbc99616381ea669c546eb1daf8924454a7ee84655",
    "train_task2_id_coco.json": "75c357e8561c99b89cb6bab0569255e5f58e9eecbe205c7e5dbd8c0f7ea82b99",
    "train_task3_id_coco.json": "be947d39532ca588fcb19df281353badaed17aa8158dda9c2b2aeab4ed465286",
    "test_task0_id_coco.json": "2d14db294fe52061e9f930986ab62e6969f4e81ee201efb21566ca66971c6105",
    "test_task1_id_coco.json": "8b34d7201202dc23cf43f65c460b3485e44dfa395485c499ffe5f280a777aa56",
    "test_task2_id_coco.json": "b5fc303c07a71ef2c12860230e3760155882ee7e20421f3937b894738616d49d",
    "test_task3_id_coco.json": "8270e24ab2c4f719b260b518f1f7197929160b3026c4febe73e0a8f0099d11c4",
    "teorg_task0_id_coco.json": "436afb97657eefddc390f5259ad1aa2a916d244cbd190d32c141f2c8f5bc2d87",
    "teorg_task1_id_coco.json": "06330b7c9456cbfec9bd03dbbf4a3af30bd2be8206319c236e85335fdf65ebc6",
    "teorg_task2_id_coco.json": "75850691619e56e383d3fe6f6f5b20b4a6e59602674ea8fefa369736a9b5423e",
    "teorg_task3_id_coco.json": "f6b394274c45842a180fb934e09774fec59d041bf7b87c48d82f0f23aac134e5",
}
TIMEOUT = 60  # seconds


def download_ids(folder: Path) -> Path:
    """Fetch the id files that are not there yet; Sec. 4.1, the released split.

    Parameters
    ----------
    folder : Path
        Where they are put.

    Returns
    -------
    Path
        The folder, with all files of `CHECKSUMS`.

    Raises
    ------
    OSError
        If a file cannot be fetched, with what to do instead.
    ValueError
        If a file, fetched or found, is not the released one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, checksum in CHECKSUMS.items():
        file = folder / name
        if not file.is_file():
            content = _fetch(f"{SOURCE}/{name}")
            _check(f"{SOURCE}/{name}", content, checksum)
            partial = file.with_suffix(".part")
            partial.write_bytes(content)
            os.replace(partial, file)
        _check(file, file.read_bytes(), checksum)
    return folder


def _fetch(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            return answer.read()
    except (OSError, HTTPException) as error:
        raise OSError(
            f"cannot fetch {address} ({error}); get the files from there by hand and name their "
            "folder with --ids, or leave both out to derive a split"
        ) from error


def _check(where: Path | str, content: bytes, checksum: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != checksum:
        raise ValueError(
            f"expected the released file with SHA-256 {checksum[:12]}… at {where}, got "
            f"{found[:12]}…; delete it if it is yours and run the command again, or name a folder "
            "of your own with --ids"
        )
