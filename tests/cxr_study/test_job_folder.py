import json
import shutil
from pathlib import Path

import pytest

from cxr_study import job_folder
from cxr_study.job_folder import CLIENT_CONFIG, SERVER_CONFIG, JobError

SURGICAL = Path(__file__).parents[2] / "jobs" / "surgical"


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def copy(tmp_path):
    """Copy the surgical job with some knobs set; returns the copy."""

    def make(settings=None, sites=("a", "b")):
        target = tmp_path / "copies" / "job"
        job_folder.copy(SURGICAL, target, sites=sites, settings=settings or {})
        return target

    return make


class TestKnobs:
    def test_server_and_client_knobs_have_their_types(self):
        knobs = job_folder.knobs(SURGICAL)
        wanted = {
            "num_rounds": 12,
            "body_weighting": "mean",
            "backbone": "small_densenet",
            "learning_rate": 1e-3,
            "augment": True,
            "report_positives": False,
        }
        assert {name: knobs[name] for name in wanted} == wanted
        assert [type(knobs[name]) for name in wanted] == [type(v) for v in wanted.values()]

    def test_only_settings_at_the_top_are_knobs(self):
        assert set(job_folder.knobs(SURGICAL)) == {
            "num_rounds", "start_round", "min_clients", "wait_seconds", "initial_body",
            "body_weighting", "head_weighting", "batch_norm", "sites", "backbone", "image_size",
            "hidden", "batch_size", "augment", "epochs", "learning_rate", "warmup_epochs",
            "warmup_learning_rate", "report_positives", "seed", "threads",
        }  # fmt: skip

    def test_a_folder_that_is_no_job_is_refused(self, tmp_path):
        with pytest.raises(JobError, match=r"config_fed_server\.conf does not exist; a job folder"):
            job_folder.knobs(tmp_path)

    def test_a_file_is_no_job(self):
        with pytest.raises(JobError, match="does not exist; a job folder holds"):
            job_folder.knobs(SURGICAL / "meta.json")


def test_sites_are_those_of_the_deploy_map():
    assert job_folder.sites(SURGICAL) == ("nih", "chexpert")


class TestCopy:
    def test_without_settings_only_the_sites_change(self, copy):
        original, copied = content(SURGICAL), content(copy(sites=("nih", "chexpert")))
        assert copied.pop(Path("meta.json")) and original.pop(Path("meta.json"))
        assert copied == original

    def test_sites_are_written_and_nothing_else_of_the_meta(self, copy):
        meta = json.loads((copy(sites=("a", "b", "c")) / "meta.json").read_text())
        assert meta["deploy_map"].pop("app_client") == ["a", "b", "c"]
        own = json.loads((SURGICAL / "meta.json").read_text())
        del own["deploy_map"]["app_client"]
        assert meta == own

    def test_knobs_are_set_in_both_files_and_every_other_byte_is_kept(self, copy):
        target = copy({"num_rounds": 3, "batch_norm": "/moving_mean$", "hidden": 256})
        for name, replaced in {
            SERVER_CONFIG: [
                ("num_rounds = 12\n", "num_rounds = 3\n"),
                (
                    'batch_norm = "/(gamma|beta|moving_mean|moving_variance)$"   # FedBN+',
                    'batch_norm = "/moving_mean$"   # FedBN+',
                ),
            ],
            CLIENT_CONFIG: [
                (
                    "hidden = 0                                 # units",
                    "hidden = 256" + 33 * " " + "# units",
                ),
                (
                    'batch_norm = "/(gamma|beta|moving_mean|moving_variance)$"   # FedBN+',
                    'batch_norm = "/moving_mean$"   # FedBN+',
                ),
            ],
        }.items():
            text = (SURGICAL / name).read_text()
            for old, new in replaced:
                assert text.count(old) == 1
                text = text.replace(old, new)
            assert (target / name).read_text() == text

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("sites", "/my data/of # 1"),
            ("initial_body", "C:\\runs\\body.npz"),
            ("batch_norm", r"\d+/(gamma|beta)$"),
            ("backbone", 'say "dense"'),
            ("augment", False),
            ("report_positives", True),
            ("learning_rate", 1e-5),
            ("learning_rate", 1),
            ("seed", -3),
        ],
    )
    def test_a_value_is_read_back_as_it_was_set(self, copy, name, value):
        knobs = job_folder.knobs(copy({name: value}))
        assert knobs.pop(name) == value
        own = job_folder.knobs(SURGICAL)
        del own[name]
        assert knobs == own

    def test_the_job_itself_stays_as_it_is(self, copy):
        before = content(SURGICAL)
        copy({"num_rounds": 99})
        assert content(SURGICAL) == before

    def test_a_copy_can_be_copied(self, copy, tmp_path):
        first = copy({"num_rounds": 3, "learning_rate": 1e-5})
        job_folder.copy(first, tmp_path / "second", sites=["c"], settings={"seed": 5})
        knobs = job_folder.knobs(tmp_path / "second")
        assert (knobs["num_rounds"], knobs["learning_rate"], knobs["seed"]) == (3, 1e-5, 5)

    def test_an_unknown_knob_is_refused_with_the_nearest(self, copy, tmp_path):
        message = r"job 'surgical' has no knob 'num_round'; nearest known: num_rounds"
        with pytest.raises(JobError, match=message):
            copy({"num_round": 3})
        assert not (tmp_path / "copies").exists()

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("num_rounds", "three", "a whole number, as the job's own 12 is; got 'three'"),
            ("num_rounds", 2.5, "a whole number"),
            ("num_rounds", True, "a whole number"),
            ("learning_rate", "fast", "a number"),
            ("augment", 1, "true or false"),
            ("backbone", 121, "a text"),
        ],
    )
    def test_a_value_of_another_kind_is_refused(self, copy, name, value, kind):
        with pytest.raises(JobError, match=f"knob '{name}' needs {kind}"):
            copy({name: value})

    def test_a_job_without_meta_is_refused(self, tmp_path):
        shutil.copytree(SURGICAL, tmp_path / "job")
        (tmp_path / "job/meta.json").unlink()
        with pytest.raises(JobError, match=r"meta\.json does not exist"):
            job_folder.sites(tmp_path / "job")
