from types import SimpleNamespace

import pytest

from cxr_studies.runner import provenance


def test_the_digest_changes_with_any_code_or_data_file_and_with_nothing_else(tmp_path, monkeypatch):
    modules = {name: tmp_path / name / "__init__.py" for name in provenance._PACKAGES}
    for file in modules.values():
        (file.parent / "sub").mkdir(parents=True)
        file.touch()
        (file.parent / "sub/a.py").write_text("a = 1")
    found = lambda name: SimpleNamespace(__file__=modules[name])  # noqa: E731
    monkeypatch.setattr(provenance, "import_module", found)
    seen = [provenance.sources()]
    for change in (
        lambda folder: (folder / "sub/a.py").write_text("a = 2"),
        lambda folder: (folder / "sub/a.py").rename(folder / "sub/b.py"),
        *(lambda folder, name=name: (folder / name).touch()
          for name in ("b.py", "sub/labels.csv", "sub/names.yaml", "sub/body.npz")),
    ):  # fmt: skip
        change(tmp_path / "cxr_phantom")
        seen.append(provenance.sources())
    assert len(set(seen)) == 7 and all(len(digest) == 12 for digest in seen)
    (tmp_path / "cxr_study/notes.md").touch()
    assert provenance.sources() == seen[-1]


@pytest.mark.parametrize(("text", "wanted"), [
    ("processor\t: 0\nmodel name\t: Xeon 1 \nmodel name\t: Xeon 1\n", "Xeon 1"),
    (None, "arm"),
])  # fmt: skip
def test_the_machine_is_its_processor(tmp_path, monkeypatch, text, wanted):
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(provenance, "_CPUINFO", file)
    monkeypatch.setattr(provenance.platform, "processor", lambda: "")
    monkeypatch.setattr(provenance.platform, "machine", lambda: "arm")
    assert provenance.machine() == wanted
