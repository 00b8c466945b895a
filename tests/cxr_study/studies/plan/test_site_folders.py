import pytest

from cxr_study.studies.plan.site_folders import key_of, written

WHAT = {"sites": 2, "classes": ["Mass", "Ödem"]}


def put(text):
    """A function that writes a text into a folder, and the folders that it was called with."""
    calls = []

    def write(folder):
        calls.append(folder)
        (folder / "text").write_text(text)

    return write, calls


class TestKeyOf:
    def test_the_same_content_has_the_same_key_whatever_the_order_of_its_names(self):
        turned = dict(reversed(WHAT.items()))
        assert key_of(turned) == key_of(WHAT) == key_of({**WHAT, "classes": ("Mass", "Ödem")})

    @pytest.mark.parametrize("change", [{"sites": 3}, {"classes": ["Ödem", "Mass"]}, {"seed": 0}])
    def test_other_content_has_another(self, change):
        assert key_of(WHAT | change) != key_of(WHAT)

    def test_it_is_sixteen_digits_that_never_change(self):
        assert key_of({"seed": 0}) == "de7d7744ccd7722e"


class TestWritten:
    def test_it_is_named_by_what_is_in_it(self, tmp_path):
        write, _ = put("a")
        folder = written(tmp_path / "sites", WHAT, write)
        assert folder == tmp_path / "sites" / key_of(WHAT)
        assert (folder / "text").read_text() == "a"

    def test_it_is_written_once(self, tmp_path):
        write, calls = put("a")
        assert written(tmp_path, WHAT, write) == written(tmp_path, WHAT, write)
        assert len(calls) == 1

    def test_another_content_has_a_folder_of_its_own(self, tmp_path):
        texts = {n: written(tmp_path, {"n": n}, put(str(n))[0]) for n in (1, 2)}
        assert [(texts[n] / "text").read_text() for n in (1, 2)] == ["1", "2"]

    def test_relative_paths_lead_out_of_it_as_before(self, tmp_path):
        def write(half):
            (half / "link").symlink_to("../../labels.csv")
            assert (half / "link").read_text() == "Mass"

        (tmp_path / "labels.csv").write_text("Mass")
        folder = written(tmp_path / "sites", WHAT, write)
        assert (folder / "link").read_text() == "Mass"

    def test_one_that_fails_leaves_nothing(self, tmp_path):
        def write(half):
            (half / "text").write_text("half of it")
            assert not (tmp_path / key_of(WHAT)).exists()
            raise ValueError("no disk")

        with pytest.raises(ValueError, match="no disk"):
            written(tmp_path, WHAT, write)
        assert list(tmp_path.iterdir()) == []

    def test_what_another_study_wrote_meanwhile_stays(self, tmp_path):
        def write(half):
            put("slow")[0](half)
            written(tmp_path, WHAT, put("fast")[0])

        folder = written(tmp_path, WHAT, write)
        assert (folder / "text").read_text() == "fast"
        assert list(tmp_path.iterdir()) == [folder]

    def test_a_folder_that_cannot_be_there_is_an_error(self, tmp_path):
        (tmp_path / key_of(WHAT)).write_text("a file")
        with pytest.raises(OSError, match=key_of(WHAT)):
            written(tmp_path, WHAT, put("a")[0])
