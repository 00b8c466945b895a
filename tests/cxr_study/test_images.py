import numpy as np
import pytest
from PIL import Image

from cxr_study import images
from cxr_study.images import ImageError, decode, index_by_name, load_images, locate


@pytest.fixture
def png(tmp_path):
    def write(pixels, name="x.png", mode=None):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        image = Image.fromarray(np.asarray(pixels))
        (image.convert(mode) if mode else image).save(path)
        return path

    return write


GREY = np.array([[0, 50], [100, 255]], dtype=np.uint8)


class TestDecode:
    @pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P"])
    def test_grey_comes_out_of_every_colour_model_unchanged(self, png, mode):
        pixels = decode(png(GREY, mode=mode), 2)
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels, GREY)

    def test_transparency_is_ignored(self, png):
        rgba = np.dstack([GREY, GREY, GREY, np.zeros_like(GREY)])
        np.testing.assert_array_equal(decode(png(rgba), 2), GREY)

    def test_sixteen_bits_are_scaled_by_their_full_range(self, png):
        deep = np.array([[0, 257], [51_600, 65535]], dtype=np.uint16)
        np.testing.assert_array_equal(decode(png(deep), 2), [[0, 1], [201, 255]])

    def test_jpeg_is_read_as_grey(self, png):
        flat = np.full((16, 16, 3), 77, dtype=np.uint8)
        np.testing.assert_array_equal(decode(png(flat, "x.jpg"), 16), flat[..., 0])

    def test_reducing_averages_and_does_not_pick(self, png):
        checks = (np.indices((8, 8)).sum(axis=0) % 2 * 255).astype(np.uint8)
        assert np.all(abs(decode(png(checks), 2).astype(int) - 127) < 10)

    def test_an_oblong_fills_the_square(self, png):
        assert decode(png(np.zeros((30, 40), np.uint8)), 8).shape == (8, 8)

    def test_a_cut_off_file_is_refused_by_name(self, png):
        path = png(np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8))
        path.write_bytes(path.read_bytes()[:1000])
        with pytest.raises(ImageError, match=r"x\.png cannot be decoded"):
            decode(path, 64)


class TestLocate:
    def test_direct_paths_come_before_the_search(self, png, tmp_path):
        there = [png(GREY, "a.png"), png(GREY, "images_001/b.png")]
        assert locate(tmp_path, ["a.png", "images_001/b.png"]) == there

    def test_a_bare_name_is_found_at_any_depth(self, png, tmp_path):
        (tmp_path / "images_012").mkdir()
        deep = png(GREY, "images_012/images/b.png")
        assert locate(tmp_path, ["b.png", "c.png"]) == [deep, None]

    def test_a_path_is_not_looked_for_by_its_name_alone(self, png, tmp_path):
        png(GREY, "patient2/view1_frontal.jpg")
        png(GREY, "patient3/view1_frontal.jpg")
        assert locate(tmp_path, ["patient1/view1_frontal.jpg"]) == [None]

    def test_two_files_of_one_name_are_refused(self, png, tmp_path):
        png(GREY, "224/a.png")
        png(GREY, "512/a.png")
        with pytest.raises(ImageError, match=r"a\.png is both .* and .*Point at"):
            index_by_name(tmp_path)

    def test_only_images_are_listed(self, png, tmp_path):
        (tmp_path / "list.csv").write_text("")
        image = png(GREY, "a.PNG")
        assert index_by_name(tmp_path) == {"a.PNG": image}


class TestLoadImages:
    def test_images_stand_in_the_order_of_the_paths(self, png, tmp_path):
        paths = [png(np.full((2, 2), i, np.uint8), f"{i}.png") for i in (3, 1, 2)]
        pixels = load_images(paths, 2, tmp_path / "cache")
        assert (pixels.shape, pixels.dtype) == ((3, 2, 2), np.uint8)
        assert pixels[:, 0, 0].tolist() == [3, 1, 2]

    def test_the_second_time_nothing_is_decoded(self, png, tmp_path, monkeypatch):
        paths = [png(GREY)]
        first = load_images(paths, 2, tmp_path / "cache")
        monkeypatch.setattr(images, "decode", None)
        np.testing.assert_array_equal(load_images(paths, 2, tmp_path / "cache"), first)

    def test_a_changed_file_is_decoded_again(self, png, tmp_path):
        path = png(GREY)
        load_images([path], 2, tmp_path / "cache")
        png(np.full((9, 9), 9, np.uint8))
        assert load_images([path], 2, tmp_path / "cache").max() == 9

    def test_another_size_or_order_is_another_cache_entry(self, png, tmp_path):
        a, b = png(GREY, "a.png"), png(255 - GREY, "b.png")
        load_images([a, b], 2, tmp_path / "cache")
        assert load_images([a, b], 4, tmp_path / "cache").shape == (2, 4, 4)
        assert load_images([b, a], 2, tmp_path / "cache")[0, 0, 0] == 255

    def test_the_cache_folder_of_the_study_is_the_default(self, png, tmp_path, monkeypatch):
        monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "default"))
        load_images([png(GREY)], 2)
        assert len(list((tmp_path / "default").glob("images-*.npy"))) == 1

    def test_unreadable_files_are_counted_and_the_first_five_named(self, png, tmp_path):
        paths = [png(GREY), tmp_path / "gone.png"]
        for number in range(5):
            paths.append(tmp_path / f"bad{number}.png")
            paths[-1].write_text("no image")
        with pytest.raises(ImageError) as error:
            load_images(paths, 2, tmp_path / "cache")
        text = str(error.value)
        assert text.startswith("6 of 7 images cannot be read")
        assert [name in text for name in ("gone", "bad0", "bad3", "bad4")] == [1, 1, 1, 0]
        assert list((tmp_path / "cache").iterdir()) == []

    def test_progress_ends_at_the_total(self, png, tmp_path):
        seen = []
        paths = [png(GREY, f"{i}.png") for i in range(3)]
        load_images(paths, 2, tmp_path / "cache", lambda done, total: seen.append((done, total)))
        assert seen == [(1, 3), (2, 3), (3, 3)]

    def test_no_paths_give_no_images(self, tmp_path):
        assert load_images([], 2, tmp_path / "cache").shape == (0, 2, 2)
