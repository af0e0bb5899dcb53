"""Images are scaled as in the released code, and only whole JPEG files are read."""

import numpy as np
import pytest
from PIL import Image

from prslib.datasets.images import read_image

NAME = "noise.jpg"


@pytest.fixture
def file(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (90, 400, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / NAME)
    return tmp_path / NAME


def test_images_are_scaled_as_pillow_does_by_bicubic_interpolation(file):
    with Image.open(file) as image:
        bicubic = image.resize((256, 256), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(read_image(file.parent, NAME), np.asarray(bicubic))


@pytest.mark.parametrize("kind", ["PNG", "GIF", "cut", "rubbish"])
def test_what_is_no_whole_jpeg_is_refused_by_name(file, kind):
    if kind == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    elif kind == "rubbish":
        file.write_bytes(b"no image")
    else:
        Image.new("RGB", (40, 40)).save(file, format=kind)
    with pytest.raises(ValueError, match=f"image in {file}, but"):
        read_image(file.parent, NAME)
