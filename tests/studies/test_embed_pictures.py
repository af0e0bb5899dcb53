"""The study that embeds icons and clip art, on packages of a few pictures."""

import hashlib
import io
import json
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


def test_icons_have_tags_and_the_family_of_their_base(study, write):
    rows = [
        ("c", "b", ["T"]),
        ("b", "a", ["T", "U"]),
        ("a", "a", []),
        ("d", "d", ["U"]),
    ]
    icons = [
        {"name": name, "id": name, "baseIconId": base, "tags": tags}
        for name, base, tags in rows
    ]
    files = {"meta.json": json.dumps(icons).encode()}
    files |= {f"svg/{name}.svg": b"icon " + name.encode() for name in "abcd"}
    folder = write("MDI", "mdi-svg-1.tgz", archive("package/", files))
    read = [(icon.name, icon.labels, icon.family) for icon in study.read_icons(folder)]
    assert read == [("b", {"T", "U"}, "a"), ("c", {"T"}, "a"), ("d", {"U"}, "d")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "mdi-svg-7.4.46.tgz",
            "expected @mdi/svg 7.4.47 in .*7.4.46.tgz, SHA-256 de92",
        ),
        ("another.tgz", "one file mdi-svg-.* got 0; npm pack @mdi/svg@7.4.47"),
    ],
)
def test_another_version_is_an_error(study, tmp_path, name, message):
    (tmp_path / name).write_bytes(b"another")
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        study.make("mdiseq", tmp_path, tmp_path / "made.npz")
    assert "\n" not in str(error.value)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_picture_that_cannot_be_read_is_named_and_nothing_stays(
    study, write_clip_art, tmp_path
):
    folder = write_clip_art({"a/whole.png": png("red"), "a/short.png": png("red")[:40]})
    before = set(tmp_path.iterdir())
    with pytest.raises(
        ValueError, match=r"expected the picture a/short\.png, but it can"
    ):
        study.make("clipartseq", folder, tmp_path / "made.npz")
    assert set(tmp_path.iterdir()) == before


def test_a_tag_file_cut_short_is_named(study, write):
    files = {"meta.json": b'[{"name": "a", "id"'}
    folder = write("MDI", "mdi-svg-1.tgz", archive("package/", files))
    with pytest.raises(
        ValueError, match=r"expected the icons' meta\.json, but it cannot"
    ):
        list(study.read_icons(folder))


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
