"""The study that embeds icons and clip art, on packages of a few pictures."""

import hashlib
import io
import tarfile

import numpy as np
import pytest
from PIL import Image

SVG = """<svg xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject>
<Bag><li>Fruit</li><li> two  words</li><li>hash</li><li/></Bag></dc:subject></svg>"""


def archive(root, files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz") as members:
        for name, content in files.items():
            info = tarfile.TarInfo(root + name)
            info.size = len(content)
            members.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def debian(kind, files):
    """Return a Debian package: an ar archive of three members."""
    data = archive(f"./usr/share/openclipart/{kind}/", files)
    package = b"!<arch>\n"
    for name, content in (("debian-binary", b"2.0"), ("data.tar.xz", data)):
        package += f"{name:<48}{len(content):<10}`\n".encode()
        package += content + b"\n" * (len(content) % 2)
    return package


def png(colour, mode="RGBA"):
    stream = io.BytesIO()
    Image.new(mode, (6, 4), colour).save(stream, "png")
    return stream.getvalue()


@pytest.fixture
def study(program, monkeypatch):
    study = program("embed_pictures")
    monkeypatch.setattr(
        study, "rasterise", lambda svg: np.frombuffer(svg.encode(), "u1")
    )
    return study


@pytest.fixture
def write(study, tmp_path, monkeypatch):
    """Return a function that writes a package and lets the study expect it."""

    def write(which, name, content):
        (tmp_path / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        package = getattr(study, which)
        monkeypatch.setattr(
            study, which, type(package)(package.pattern, "1", digest, "get it")
        )
        return tmp_path

    return write


@pytest.fixture
def write_clip_art(write):
    def write_both(pictures):
        drawings = {f"{name[:-4]}.svg": SVG.encode() for name in pictures}
        write("SVG", "openclipart-svg_1.deb", debian("svg", drawings))
        return write("PNG", "openclipart-png_1.deb", debian("png", pictures))

    return write_both


def test_copies_of_a_picture_are_one_and_join_families(study, write_clip_art):
    red, green, blue = map(png, ("red", "green", "blue"))
    files = {
        "a/x_01.png": red,
        "a/x_02.png": green,
        "b/y.png": green,
        "b/y_2.png": blue,
    }
    others = {"shapes/z.png": red, "a/z.png": png((0, 0, 0, 0))}
    folder = write_clip_art(files | others)
    pictures = study.Pictures.merge(study.read_clip_art(folder))
    assert pictures.names == ["a/x_01.png", "a/x_02.png", "a/z.png", "b/y_2.png"]
    assert pictures.labels[1] == {"fruit", "two words"}
    first, second, alone, last = pictures.family()
    assert first == second == last != alone
    assert (pictures.pixels[2] == 255).all()  # transparent, on white


def test_siblings_stay_on_one_side(study):
    rng = np.random.default_rng(0)
    family = rng.integers(60, size=300)
    labels = np.eye(4, dtype=bool)[rng.integers(4, size=300)]
    parts = study.split(labels, family, rng)
    names = np.array([f"picture {row}" for row in range(300)])
    study.check_families(family, names, parts)
    assert labels[parts.balanced].sum(axis=0).tolist() == [10] * 4
    moved = study.Split(np.append(parts.train, parts.balanced[0]), *parts[1:])
    with pytest.raises(ValueError, match=r"expected siblings on one side .*picture"):
        study.check_families(family, names, moved)
