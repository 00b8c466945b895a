import numpy as np

from cxr_study.data.images import image_store
from cxr_study.models.prediction import image_reader
from cxr_study.models.prediction.found_images import find
from deep_pictures import png_16
from tiny_model import picture


def test_pixels_that_were_decoded_before_are_not_decoded_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "images"
    for name in ("a.png", "sub/b.png"):
        picture(folder / name, seed=len(name))
    files = [one.path for one in find([folder])]
    prepared = image_store.prepare(folder, ["a", "b"], files, 32)
    picture(folder / "new.png", seed=9)
    decoded = []
    whole = image_reader.decoding.decode

    def counted(data, size, bits):
        decoded.append(len(data))
        return whole(data, size, bits=bits)

    monkeypatch.setattr(image_reader.decoding, "decode", counted)
    (read,) = image_reader.read(find([folder / "sub", folder]), 32)
    assert [one.image for one in read] == ["b.png", "a.png", "new.png", "sub/b.png"]
    assert decoded == [(folder / "new.png").stat().st_size]
    for one, row in ((read[1], 0), (read[3], 1), (read[0], 1)):
        assert (one.pixels == prepared.pixels[prepared.index["row"][row]]).all()
    picture(folder / "a.png", seed=77)  # a changed file is decoded anew
    (again,) = image_reader.read(find([folder / "a.png"]), 32)
    assert len(decoded) == 2 and not (again[0].pixels == read[1].pixels).all()


def test_pictures_are_read_with_their_sites_bits_kept_ones_too(tmp_path, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(png_16(np.linspace(0, 2**14 - 1, 1024).reshape(32, 32)))
    for _ in range(2):  # decoded, then kept
        ((alone,),) = image_reader.read(find([folder / "a.png"]), 32)
        ((known,),) = image_reader.read(find([folder / "a.png"]), 32, 14)
        assert alone.flags[0].startswith("14-bit values") and alone.pixels.max() == 64
        assert (known.flags, known.bits, known.pixels.max()) == ((), 14, 255)
        image_store.prepare(folder, ["a"], [str(folder / "a.png")], 32, bits=14)


def test_images_come_in_chunks_in_their_order_and_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(image_reader, "CHUNK", 2)
    for name in "abcde":
        picture(tmp_path / f"{name}.png")
    found = find([tmp_path])
    (tmp_path / "d.png").unlink()
    chunks = list(image_reader.read(found, 32))
    assert [[one.image[0] for one in chunk] for chunk in chunks] == [["a", "b"], ["c", "d"], ["e"]]
    assert chunks[1][1].pixels is None and chunks[1][1].problem == "No such file or directory"
