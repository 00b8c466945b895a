"""`surgagg run` from data to report, in FLARE's simulator."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from body_statistics import with_statistics
from cxr_phantom.writers.write_phantom import write_phantom
from cxr_studies.partition.class_sets import published
from cxr_study.data.sites.split_file import read_split
from cxr_study.evaluation.summary_json import Summary
from cxr_study.jobs.job import Job
from cxr_study.reports.run.comparisons import comparisons
from cxr_study.runs.simulator_process import server_folder
from surgical_aggregation.checkpoints.checkpoint import digest, load, save
from typed import Typist

ROOT = Path(__file__).parents[2]
MINI = ROOT.parent / "shared" / "data" / "nih-mini"
SMALL = ["--set", "image_size=32", "--set", "warmup_epochs=1", "--set", "backbone=tiny_densenet"]


@pytest.fixture(scope="module")
def surgagg(tmp_path_factory):
    return Typist(tmp_path_factory.mktemp("surgagg"))


@pytest.fixture(scope="module")
def initial_body(surgagg):
    of = ("--backbone", "tiny_densenet", "--weights", "none", "--image-size", 32)
    output = surgagg.output_of("surgagg", "model", "init", "initial.npz", *of)
    assert "Random weights: use strategy fedavg or fedbn" in output
    path = surgagg.home / "initial.npz"
    made = load(path)
    assert made.manifest["initial_body_sha256"] == digest(made.variables)
    assert made.manifest["weights"] == "none"
    save(with_statistics(made), path)
    return path


def finished(surgagg, initial_body, job, out, *options):
    """Make a small run; what it left."""
    of = ("--initial-body", initial_body, "--out", out, *SMALL, *options)
    output = surgagg.output_of("surgagg", "run", job, *of)
    folder = surgagg.home / out
    summary = Summary.from_json((folder / "report/summary.json").read_text())
    html = (folder / "report/report.html").read_text()
    return SimpleNamespace(out=output, folder=folder, summary=summary, html=html)


@pytest.fixture(scope="module")
def phantom(surgagg, initial_body):
    """A run on the phantom of what is recommended, with local models, and as published."""
    write_phantom(surgagg.home / "phantom", images_per_site=120, size=32)
    return finished(
        surgagg, initial_body, ROOT / "jobs/surgical", "runs/phantom", "--local-models",
        "--published", "--preset", "recommended", "--site-files", "phantom/sites",
        "--set", "num_rounds=2", "--set", "nih:learning_rate=2e-3",
    )  # fmt: skip


class TestRun:
    def test_it_prints_the_table_and_where_everything_is(self, phantom):
        lines = phantom.out.splitlines()
        assert any("Mean AUROC on each site's test split" in line for line in lines)
        assert any(line.startswith("│ chexpert") for line in lines)
        for what, path in {
            "report": "runs/phantom/report/report.html",
            "summary": "runs/phantom/report/summary.json",
            "models": "runs/phantom/workspace/server/checkpoints/simulate_job",
        }.items():
            assert f"{what:8} {path}" in lines
            assert (phantom.folder.parents[1] / path).exists()
        assert "Surgical aggregation: nih, chexpert" in phantom.html
        summary = phantom.summary
        assert [entry.round for entry in summary.rounds] == [0, 1, 2]
        assert all(set(entry.sites) == {"nih", "chexpert"} for entry in summary.rounds)
        assert summary.num_rounds == 2 and summary.image_size == 32
        assert summary.title == "Surgical aggregation: nih, chexpert"

    def test_aurocs_are_those_that_the_sites_measured_or_on_the_truth(self, phantom):
        path = server_folder(phantom.folder / "workspace") / "cross_site_val"
        measured = json.loads((path / "cross_val_results.json").read_text())
        found = [row for row in phantom.summary.test if row.model == "global"]
        rows = [row for row in found if row.labelled]
        for row in rows:
            federated = measured[row.site]["SRV_best"].get(f"auroc/{row.class_name}")
            assert row.auroc == pytest.approx(federated, abs=1e-6), row
        assert sum(row.auroc is not None for row in rows) > 10
        rows = [row for row in found if not row.labelled]
        assert len(rows) == 6 + 7
        assert all(row.labels == "truth" and row.positives + row.negatives > 0 for row in rows)
        assert any(row.auroc is not None for row in rows)
        for site, data in phantom.summary.sites.items():
            local = (row for row in phantom.summary.test if row.model == "local")
            known = {row.class_name for row in local if row.site == site and row.auroc is not None}
            assert known and known <= set(data.classes)

    def test_the_method_as_published_and_each_site_alone_have_rows_beside_it(self, phantom):
        jobs = (Job.from_folder(phantom.folder / name) for name in ("job", "published/job"))
        ours, published = (job.settings for job in jobs)
        assert (ours["strategy"], ours["refit_model"]) == ("fedbn+", "best")
        assert (published["strategy"], published["refit_model"]) == ("fedbn+", "none")
        assert published["num_rounds"] == ours["num_rounds"]
        means = {(row.model, row.site, row.classes): row for row in phantom.summary.means}
        assert {model for model, *_ in means} == {"global", "published", "local"}
        for each in phantom.summary.differences:
            models = ("global", each.against)
            one, other = (means[model, each.site, each.classes].auroc for model in models)
            assert each.auroc == pytest.approx(one - other) and each.low <= each.auroc <= each.high
        compared = [(each.against, each.classes, each.site) for each in phantom.summary.differences]
        # Of patients enough, which these splits may lack.
        for against, classes in (
            ("local", "labelled"), ("published", "labelled"), ("published", "unlabelled"),
        ):  # fmt: skip
            sites = [s for s in ("nih", "chexpert") if means["global", s, classes].defined]
            assert [site for *which, site in compared if which == [against, classes]] == sites
        output = " ".join(phantom.out.split())
        for sentence in comparisons(phantom.summary):
            assert sentence in output
            assert sentence in phantom.html
        with_few = {means[model, "nih", "labelled"].with_few for model in ("global", "published")}
        assert len(with_few) == 2
        assert "as published" in phantom.out and "as published" in phantom.html

    def test_a_setting_of_one_site_is_at_that_site_alone_and_in_its_own_run(self, phantom):
        job, own = (phantom.folder / name for name in ("job", "local"))
        for site, rate in {"nih": 2e-3, "chexpert": 1e-3}.items():
            for folder in (job, own / f"{site}-job"):
                assert Job.from_folder(folder).at(site).learning_rate == rate
        assert Job.from_folder(job).folder.apps == {"nih": "app_nih", "chexpert": "app_client"}

    def test_the_examples_read_it_and_use_its_model(self, surgagg, phantom):
        (phantom.folder.parent / "example").symlink_to(phantom.folder)
        output = surgagg.example("run_and_results.py")
        assert f"best round {phantom.summary.best.round}" in output and "unlabelled" in output
        assert (surgagg.home / "rounds.png").is_file()
        output = surgagg.example("use_model.py")
        assert f"{len(phantom.summary.union)} classes" in output
        assert len([line for line in output.splitlines() if line.startswith("Cardiomegaly  ")]) == 1


@pytest.mark.data
@pytest.mark.skipif(not MINI.is_dir(), reason=f"no NIH images in {MINI}")
def test_real_images_are_cut_into_two_sites_and_the_report_names_its_limits(surgagg, initial_body):
    surgagg.output_of("surgagg", "data", "partition", MINI, "--out", "runs/real-sites")
    real = finished(
        surgagg, initial_body, "surgical", "runs/real", "--site-files", "runs/real-sites",
        "--sites", "nih-1,nih-2", "--set", "num_rounds=1", "--preset", "recommended",
    )  # fmt: skip
    summary = real.summary
    assert [entry.round for entry in summary.rounds] == [0, 1] and summary.data == "real"
    assert sum(site.images.total for site in summary.sites.values()) == 1000
    split = read_split(surgagg.home / "runs/real-sites/split.csv").assignment
    assert split["patient"].is_unique
    for name, classes in zip(("nih-1", "nih-2"), published(2), strict=True):
        assert summary.sites[name].classes == tuple(sorted(classes))
        assert (split["site"] == name).sum() == summary.sites[name].patients.total
    assert {row.model for row in summary.test} == {"global"}  # no site trained alone
    assert any(row.positives == 0 for row in summary.test)
    assert all((row.auroc is None) == (row.positives == 0) for row in summary.test)
    means = [row for row in summary.means if row.defined]  # classes of patients enough
    assert summary.means and all(m.low <= m.auroc <= m.high for m in means)
    assert "no positive image in the test split" in real.html
    assert "Too few patients." in real.html and "Too few patients." in real.out
