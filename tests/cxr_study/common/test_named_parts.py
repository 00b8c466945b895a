import sys

import pytest

from cxr_study.common.errors import InputError
from cxr_study.common.named_parts import load_object


def test_it_is_of_a_module_that_python_finds_and_not_of_this_folder(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text("PART = 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", ".")])
    assert load_object("os.path:sep") == "/"
    for name in ("os:NONE", "mine_here:PART"):
        with pytest.raises(InputError, match=r"there is no \w+ in module '\w+' \("):
            load_object(name)
