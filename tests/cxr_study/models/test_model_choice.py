import pytest

from cxr_study.models.model_choice import choose


def test_a_file_is_itself_and_has_no_site(tmp_path):
    file = tmp_path / "best.npz"
    file.touch()
    assert choose(file) == (file, None)
    with pytest.raises(ValueError, match=r"is a file.*site_best"):
        choose(file, "nih")


def test_a_folder_with_a_best_model_is_that_model(tmp_path):
    with pytest.raises(ValueError, match=r"best\.npz, is needed"):
        choose(tmp_path)
    (tmp_path / "best.npz").touch()
    assert choose(tmp_path) == (tmp_path / "best.npz", None)


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is neither"):
        choose(tmp_path / "nothing")
