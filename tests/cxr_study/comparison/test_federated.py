"""Which jobs a federated training runs; the simulator's place is taken by a record of calls."""

import dataclasses
import json
from types import SimpleNamespace

import pytest

from cxr_study.comparison import federated
from cxr_study.jobs.methods import Row
from cxr_study.runs.finished_run import checkpoint_folder, server_folder
from cxr_study.runs.simulation import LostSiteError

UNION = "Edema,Fracture,Mass"


@pytest.fixture
def train(made_up, tmp_path, monkeypatch):
    """Train a cell; what was run, what was told and what came out."""

    def train(row, rounds=2, most_rounds=5, made=(2, 3), lost=0):
        calls, told, configured = [], [], []
        losses = iter(range(lost))

        def configure(row_, folder, *, sites, union, settings):
            assert (row_, sites) == (row, ("nih", "chexpert"))
            assert ",".join(union) == UNION
            configured.append(settings)

        def simulate(job, workspace, sites, *, environment, states, watch):
            if next(losses, None) is not None:
                (workspace / "half").mkdir(parents=True)
                raise LostSiteError("the process of nih is gone")
            assert not workspace.exists()
            calls.append(
                SimpleNamespace(
                    knobs=configured[-1],
                    workspace=workspace,
                    environment=environment,
                    states=states,
                )
            )
            events = [{"event": "round", "round": n} for n in range(made[len(calls) - 1])]
            server_folder(workspace).mkdir(parents=True)
            lines = [json.dumps(event) for event in events]
            (server_folder(workspace) / "run_record.jsonl").write_text("\n".join(lines))
            watch(events)

        monkeypatch.setattr(federated, "simulate", simulate)
        monkeypatch.setattr(federated.method_job, "configure", configure)
        cell = made_up.cell(seed=7)
        setup = dataclasses.replace(cell.setup, rounds=rounds, most_rounds=most_rounds, patience=3)
        cell = dataclasses.replace(cell, row=row, setup=setup)
        trained = federated.train(cell, UNION, tmp_path / "work", told.append)
        return SimpleNamespace(calls=calls, told=told, trained=trained)

    return train


class TestTrain:
    def test_a_site_that_flare_loses_is_forgiven_once(self, train):
        assert len(train(Row("surgical", "fedbn+"), lost=1).calls) == 2

    def test_and_not_twice(self, train):
        with pytest.raises(LostSiteError):
            train(Row("surgical", "fedbn+"), lost=2)

    def test_a_second_job_goes_on_where_the_first_ended(self, train):
        first, more = train(Row("surgical", "fedbn+")).calls
        assert (first.knobs["num_rounds"], first.knobs["patience"]) == (2, 0)
        assert (more.knobs["num_rounds"], more.knobs["patience"]) == (3, 3)
        assert first.environment == {"CXR_SITES": "/sites", "CXR_INITIAL_BODY": "/body.npz"}
        last = checkpoint_folder(first.workspace) / "last.npz"
        assert more.environment == {"CXR_SITES": "/sites", "CXR_INITIAL_BODY": str(last)}
        assert first.states == {}
        assert more.states == {
            site: checkpoint_folder(first.workspace, site) for site in ("nih", "chexpert")
        }

    def test_both_jobs_have_the_seed_and_the_setup(self, train):
        for call in train(Row("surgical", "fedbn")).calls:
            assert {**call.knobs, "seed": 7, "epochs": 1} == call.knobs

    def test_the_last_model_of_the_first_job_and_the_best_of_the_second_count(self, train):
        run = train(Row("vanilla", "fedavg"))
        first, more = (checkpoint_folder(call.workspace) for call in run.calls)
        assert run.trained == {
            "equal rounds": (dict.fromkeys(("nih", "chexpert"), first / "last.npz"), 2),
            "early stopping": (dict.fromkeys(("nih", "chexpert"), more / "best.npz"), 5),
        }
        assert run.told == [2, 5]

    def test_sites_are_measured_with_their_own_models_where_they_have_some(self, train):
        run = train(Row("personalised", "fedavg"))
        first, more = (call.workspace for call in run.calls)
        equal, early = (models for models, _ in run.trained.values())
        for site in ("nih", "chexpert"):
            assert equal[site] == checkpoint_folder(first, site) / "site_last.npz"
            assert early[site] == checkpoint_folder(more, site) / "site_best.npz"

    def test_without_further_rounds_there_is_one_job(self, train):
        run = train(Row("surgical", "fedavg"), rounds=2, most_rounds=2)
        folder = checkpoint_folder(run.calls[0].workspace)
        assert len(run.calls) == 1
        models = [models["nih"] for models, _ in run.trained.values()]
        assert models == [folder / "last.npz", folder / "best.npz"]
