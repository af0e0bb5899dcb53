"""JPEG files alone, whole ones, and none outside the folder."""

import numpy as np
import pytest
from PIL import Image, ImageFile

from prslib.datasets.images import read_image

NAME = "train2014/noise.jpg"


@pytest.fixture
def original(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (90, 400, 3), dtype=np.uint8)
    (tmp_path / "train2014").mkdir()
    Image.fromarray(pixels).save(tmp_path / NAME)
    return tmp_path


def test_images_are_scaled_as_pillow_does_by_bicubic_interpolation(original):
    with Image.open(original / NAME) as image:
        bicubic = image.resize((256, 256), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(read_image(original, NAME), np.asarray(bicubic))


def test_a_folder_may_be_a_link_and_an_image_may_not(original):
    elsewhere = original / "elsewhere"
    (original / "train2014").rename(elsewhere)
    (original / "train2014").symlink_to(elsewhere)
    assert read_image(original, NAME).shape == (256, 256, 3)
    (original / "secret.jpg").write_bytes((original / NAME).read_bytes())
    (elsewhere / "link.jpg").symlink_to(original / "secret.jpg")
    (elsewhere / "below").symlink_to(original)
    links = ["train2014/link.jpg", "train2014/below/secret.jpg"]
    for name in (*links, "train2014/../secret.jpg", str(original / "secret.jpg")):
        with pytest.raises(ValueError, match=rf"{name} leads to .*secret.jpg, outside"):
            read_image(original, name)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "EPS", "cut", "rubbish"])
def test_what_is_no_whole_jpeg_is_refused_by_name(original, monkeypatch, kind):
    file = original / NAME
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # by somebody else
    if kind == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    elif kind == "rubbish":
        file.write_bytes(b"no image")
    else:
        Image.new("RGB", (40, 40)).save(file, format=kind)
    with pytest.raises(ValueError, match=f"image in {file}, but"):
        read_image(original, NAME)


def test_a_warning_on_opening_is_no_error(original, monkeypatch):
    monkeypatch.setattr(
        Image, "MAX_IMAGE_PIXELS", 20000
    )  # warns; refuses twice as many
    assert read_image(original, NAME).shape == (256, 256, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 700)
    with pytest.raises(ValueError, match=f"image in {original / NAME}, but"):
        read_image(original, NAME)
