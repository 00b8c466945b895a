import json
import shutil

import pytest

from cxr_study.evaluation.summary_json import Contribution, RefusedResult, SiteRound
from cxr_study.jobs.job import Job
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import RunFacts, RunFolderError, file_digest, finished_run, run_of
from cxr_study.runs.job_results import ResultsError
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.server.records.run_record import RECORD_FILE
from tiny_job import JOBS


def site(name, **metrics):
    return {"name": name, "metrics": [{"name": k, "value": v} for k, v in metrics.items()]}


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def write_lines(path, *entries):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def put_rounds(server, *rounds):
    write_lines(server / "metrics" / "round_metrics.jsonl", *rounds)


@pytest.fixture
def server(tmp_path):
    """A run of two rounds: site b is not in round 1, and the final model was measured at both."""
    server = tmp_path / "job"
    first = [site("b", bce=0.6, auroc=0.5, train_seconds=4.0), site("a", bce=0.4)]
    second = [site("a", bce=0.3, validate_seconds=1.0)]
    put_rounds(server, {"round": 0, "sites": first}, {"round": 1, "sites": second})
    final = {"a": {"SRV_last": {"bce": 0.25, "bce/Edema": 0.25}, "SRV_best": {"bce": 9.0}}}
    final["b"] = {"SRV_last": {"bce": 0.75, "auroc": 0.9}}
    write_lines(server / "cross_site_val" / "cross_val_results.json", final)
    write_lines(
        server / "run_record.jsonl",
        {"event": "started"}, {"event": "refused", "site": "b", "round": 1, "reason": "NaN"},
        {"event": "round", "round": 0, "seconds": 3},
        {"event": "stopped", "round": 1, "best_round": 0, "patience": 1},
        {"event": "round", "round": 1, "seconds": 3},
        {"event": "dropped", "round": 2, "reason": "not finite"},
        {"event": "ended", "seconds": 12.5},
    )  # fmt: skip
    return server


def test_every_round_and_then_the_final_model_with_what_each_site_measured(server, tmp_path):
    found = first, second, final = job_results.rounds(server)
    assert [entry.round for entry in found] == [0, 1, 2]
    assert [e.mean_validation_bce for e in found] == pytest.approx([0.5, 0.3, 0.5])
    assert list(first.sites) == ["a", "b"] and list(second.sites) == ["a"]
    assert first.sites["b"] == SiteRound(0.6, 0.5, 4.0)
    assert second.sites["a"] == SiteRound(0.3, validate_seconds=1.0)
    assert final.sites["b"] == SiteRound(0.75, 0.9)
    # A round that a later job made again is the later one's.
    again = {"round": 1, "sites": [site("a", bce=0.1)]}
    put_rounds(tmp_path / "later", again, {"round": 2, "sites": [site("a")]})
    rounds = job_results.rounds(server, tmp_path / "later")
    assert [(e.round, e.mean_validation_bce) for e in rounds] == [(0, 0.5), (1, 0.1), (2, None)]
    with pytest.raises(ResultsError, match=r"round_metrics\.jsonl holds no round; has the run"):
        job_results.rounds(tmp_path)


def test_where_the_record_is_lost_the_final_model_has_all_rounds_that_were_made(server, tmp_path):
    assert [entry.round for entry in job_results.rounds(server, made=5)] == [0, 1, 5]
    (server / "metrics/round_metrics.jsonl").unlink()
    assert [entry.round for entry in job_results.rounds(server, made=5)] == [5]
    assert job_results.last_manifest(server) == {}
    save(Checkpoint({}, {"round": 5, "planned_rounds": 6}), server / "models/last.npz")
    assert job_results.last_manifest(server).items() >= {"round": 5, "planned_rounds": 6}.items()


def test_who_contributed_is_in_the_manifest(server):
    manifest = {"contributed": {"a": [[0, 2], [4, 4]], "c": [[0, 0]]}}
    found = job_results.contributions(manifest, ["a", "b"], server)
    a, c = Contribution(((0, 2), (4, 4))), Contribution(((0, 0),))
    assert found == {"a": a, "b": Contribution((), "NaN"), "c": c}


def test_a_mean_over_sites_does_not_depend_on_which_answered_first(tmp_path):
    losses = [0.1, 0.7, 0.3, 0.2]
    for number in range(4):
        order = [*range(number, 4), *range(number)]
        sites = [site(f"site-{place}", bce=losses[place]) for place in order]
        put_rounds(tmp_path / str(number), {"round": 1, "sites": sites})
    found = [job_results.rounds(tmp_path / str(number))[0] for number in range(4)]
    assert {each.mean_validation_bce for each in found} == {found[0].mean_validation_bce}


def test_a_model_with_columns_of_the_sites_own_is_not_the_global_one(server):
    own = site("a", bce=0.1, auroc=0.9, warmed_up=3.0, train_seconds=4.0)
    put_rounds(server, {"round": 0, "sites": [own, site("b", bce=0.5, warmed_up=0.0)]})
    personal, *_ = job_results.rounds(server, personal=True)
    assert personal.mean_validation_bce == pytest.approx(0.3)
    first, *_ = job_results.rounds(server)
    assert first.mean_validation_bce == 0.5
    assert first.sites["a"] == SiteRound(None, train_seconds=4.0)


def test_the_record_tells_refusals_rounds_and_the_end(server, tmp_path):
    refused = RefusedResult(1, "b", "NaN"), RefusedResult(2, "all", "not finite")
    assert job_results.refusals(server) == refused
    assert (job_results.rounds_run(server, server), job_results.wall_seconds(server)) == (4, 12.5)
    assert job_results.stopped_early(server)
    write_lines(tmp_path / "run_record.jsonl", {"event": "ended", "seconds": 1})
    assert not job_results.stopped_early(tmp_path)
    more = {"event": "refused_too", "site": "b", "task": "train", "round": 1, "count": 9}
    write_lines(tmp_path / "run_record.jsonl", more)
    assert job_results.refusals(tmp_path) == (RefusedResult(1, "b", "9 more results, not listed"),)


def test_models_are_those_that_there_are(server, tmp_path):
    folders = {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert job_results.personal_checkpoints(folders) == {}
    with pytest.raises(ResultsError, match=r"best\.npz does not exist; has the run"):
        job_results.best_checkpoint(server)
    own, best = touch(tmp_path / "b/site_best.npz"), touch(server / "models/best.npz")
    assert job_results.personal_checkpoints(folders) == {"b": own}
    assert job_results.best_checkpoint(server) == best


def test_events_are_whole_lines_and_a_torn_one_hides_no_other(tmp_path):
    assert job_results.read_events(tmp_path) == []
    torn = '{"event": "started"}\n{"event": "rou{"event": "ended"}\n{"event": "round"}\n{"eve'
    (tmp_path / "run_record.jsonl").write_text(torn)
    assert job_results.read_events(tmp_path) == [{"event": "started"}, {"event": "round"}]
    quoted = {"event": "failed", "reason": "got 'ja\x85' or '\u2028'"}
    (tmp_path / "run_record.jsonl").write_text(json.dumps(quoted, ensure_ascii=False) + "\n")
    assert job_results.read_events(tmp_path) == [quoted]


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(JOBS / "surgical", tmp_path / "job")
    return tmp_path


def test_a_run_in_the_simulator(folder):
    RunFacts(folder / "files").write(folder)
    run = finished_run(folder)
    assert run.servers == (folder / "workspace/server/simulate_job",)
    assert (run.facts.site_files, run.facts.elsewhere, run.alone) == (folder / "files", False, {})
    assert run.states["nih"] == folder / "workspace/nih/checkpoints/simulate_job"
    nih = touch(folder / "local/nih/server/simulate_job/models/best.npz")
    chexpert = touch(folder / "local/chexpert/server/simulate_job/models/best.npz")
    own = touch(folder / "local/chexpert/chexpert/checkpoints/simulate_job/site_best.npz")
    published = touch(folder / "published/workspace/server/simulate_job/models/best.npz")
    compared = (published, nih, chexpert)
    for best in compared:  # there from the first round on, and not to be taken for the final one
        (best.parents[1] / RECORD_FILE).write_text('{"event": "round"}\n')
    begun = finished_run(folder)
    assert (begun.alone, begun.published) == ({}, None)
    assert begun.unfinished == ("as published", "nih alone", "chexpert alone")
    for best in compared:
        (best.parents[1] / RECORD_FILE).write_text('{"event": "ended", "seconds": 1}\n')
    whole = finished_run(folder)
    assert whole.alone == {"nih": nih, "chexpert": own}
    assert (whole.published, whole.unfinished) == (published, ())
    (published.parents[1] / RECORD_FILE).write_text('{"event": "failed"}\n{"event": "ended"}\n')
    assert finished_run(folder).unfinished == ("as published",)


def test_a_run_on_a_deployed_system_has_every_job_that_made_it(folder):
    for elsewhere in (True, False):
        RunFacts(None, ["1", "2"], elsewhere).write(folder)
        run = finished_run(folder)
        assert run.servers == (folder / "results/1/workspace", folder / "results/2/workspace")
        assert run.states["nih"] == folder / "sites/nih" and run.facts.elsewhere == elsewhere


def test_a_downloaded_job_is_one_and_another_folder_none(folder):
    with pytest.raises(RunFolderError, match=r"holds no run\.json"):
        finished_run(folder)
    job = folder / "1234/job/surgical"
    shutil.copytree(folder / "job", job)
    with pytest.raises(RunFolderError, match="of a downloaded job, or a workspace of FLARE"):
        run_of(folder / "1234")
    (folder / "1234/workspace").mkdir()
    run = run_of(folder / "1234")
    assert (run.job.folder.path, run.servers) == (job, (folder / "1234/workspace",))
    assert run.facts.elsewhere


def test_a_workspace_of_flares_simulator_has_its_job_put_together_again(tmp_path):
    server = tmp_path / "server/simulate_job"
    shutil.copytree(JOBS / "surgical/app_server", server / "app_server")
    shutil.copy(JOBS / "surgical/meta.json", server)
    for site in ("nih", "chexpert"):
        shutil.copytree(JOBS / "surgical/app_client", tmp_path / f"{site}/simulate_job/app_{site}")
    for _ in range(2):  # a report can be made again
        run = run_of(tmp_path)
    assert run.servers == (server,) and run.facts.elsewhere
    assert run.states["nih"] == tmp_path / "nih/checkpoints/simulate_job"
    assert run.job.sites == ("nih", "chexpert") and not run.job.has_own_site
    assert run.job.settings == Job.of("surgical").settings


def test_classes_that_may_be_one_are_named_with_their_sites(tmp_path):
    pair = {"classes": {"Mass": ["a", "b"], "Masse": ["c"]}, "reason": "nearly the same spelling"}
    write_lines(tmp_path / RECORD_FILE, {"event": "started"}, {"event": "look_alike", **pair})
    found = job_results.look_alikes(tmp_path)
    assert found == ["Mass (a and b) and Masse (c): nearly the same spelling"]


def test_a_split_that_is_another_than_in_the_training_is_noticed(tmp_path):
    shutil.copytree(JOBS / "surgical", tmp_path / "job")
    files = {site: tmp_path / f"{site}_split.csv" for site in ("nih", "chexpert")}
    for file in files.values():
        file.write_text("patient,split\n1,test\n")
    splits = {site: (str(file), file_digest(file)) for site, file in files.items()}
    RunFacts(tmp_path, splits=splits).write(tmp_path)
    assert finished_run(tmp_path).other_splits == ()
    files["nih"].write_text("patient,split\n1,train\n")
    assert finished_run(tmp_path).other_splits == ("nih",)
