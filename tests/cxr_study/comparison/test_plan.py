import pytest

from cxr_study.comparison import plan
from cxr_study.comparison.grid import ROWS, Setup
from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.phantom.writers.write import write_phantom

SETUP = Setup(("nih", "chexpert"), 2, 4, 1, {"image_size": 16})


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom") / "phantom"
    write_phantom(folder, images_per_site=60, size=16)
    return folder / "sites"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))


class TestCells:
    def test_every_row_is_trained_with_every_seed_on_the_same_data(self, phantom, tmp_path):
        cells = plan.cells(
            ROWS, 2, SETUP, site_files=phantom, initial_body=tmp_path / "body.npz", size=16
        )
        assert [(cell.row, cell.seed) for cell in cells] == [(r, s) for s in (0, 1) for r in ROWS]
        assert {(cell.site_files, cell.initial_body) for cell in cells} == {
            (phantom, tmp_path / "body.npz")
        }

    def test_on_the_phantom_every_seed_has_patients_of_its_own(self, monkeypatch, tmp_path):
        class Study:
            def __init__(self, seed):
                self.sites = tmp_path / f"phantom-{seed}"

        monkeypatch.setattr(plan, "embedded_study", Study)
        monkeypatch.setattr(plan, "embedded_initial_body", lambda: tmp_path / "body.npz")
        prepared = []
        monkeypatch.setattr(plan, "prepare", lambda *arguments: prepared.append(arguments))
        cells = plan.cells(ROWS[:2], 2, SETUP, site_files=None, initial_body=None, size=16)
        assert [cell.site_files.name for cell in cells] == ["phantom-0"] * 2 + ["phantom-1"] * 2
        assert {cell.initial_body for cell in cells} == {tmp_path / "body.npz"}
        assert prepared == [(tmp_path / f"phantom-{s}", SETUP.sites, 16) for s in (0, 1)]


class TestEqualClassesCells:
    def test_both_sites_have_the_shared_classes_in_one_order(self, phantom, tmp_path):
        cells = plan.equal_classes_cells(SETUP, phantom, tmp_path / "body.npz", tmp_path / "sites")
        assert [cell.row for cell in cells] == list(plan.EQUAL_CLASSES_ROWS)
        for site in SETUP.sites:
            written = read_site_file(cells[0].site_files / f"{site}.yaml")
            whole = read_site_file(phantom / f"{site}.yaml")
            assert written.classes == (
                "Atelectasis",
                "Cardiomegaly",
                "Consolidation",
                "Edema",
                "Pleural Effusion",
                "Pneumonia",
                "Pneumothorax",
            )
            assert (written.labels, written.images, written.split, written.policy.blank) == (
                whole.labels,
                whole.images,
                whole.split,
                whole.policy.blank,
            )
            assert classes(load_labels(written).table) == list(written.classes)

    def test_they_train_few_rounds_and_are_not_mistaken_for_others(self, phantom, tmp_path):
        cells = plan.equal_classes_cells(SETUP, phantom, tmp_path / "body.npz", tmp_path / "sites")
        assert {(c.setup.rounds, c.setup.most_rounds, c.setup.patience) for c in cells} == {
            (2, 2, 0)
        }
        assert all(cell.name.startswith("equal-classes-") for cell in cells)

    def test_sites_without_a_common_class_have_none(self, phantom, tmp_path):
        for site, held in (("nih", "Mass"), ("chexpert", "Fracture")):
            text = (phantom / f"{site}.yaml").read_text().replace("../", f"{phantom.parent}/")
            text = text.replace(f"{site}_split", f"{phantom}/{site}_split")
            (tmp_path / f"{site}.yaml").write_text(f"{text}classes: [{held}]\n")
        assert plan.equal_classes_cells(SETUP, tmp_path, tmp_path, tmp_path / "sites") == []
        assert not (tmp_path / "sites").exists()
