import json

from cxr_studies.plan.row import Row
from cxr_studies.runner.training import federated


def server(folder, *rounds):
    """The server's folder of a job that made some rounds, each with two sites."""
    (folder / "metrics").mkdir(parents=True)
    metrics = [{"name": "bce", "value": 0.5}]
    lines = []
    for number in rounds:
        weights = (("a", 30), ("b", 12 + number))
        sites = [{"name": name, "weight": weight, "metrics": metrics} for name, weight in weights]
        lines.append(json.dumps({"round": number, "sites": sites}) + "\n")
    if rounds:
        (folder / "metrics/round_metrics.jsonl").write_text("".join(lines))
    (folder / "run_record.jsonl").touch()
    return folder


def test_a_last_job_that_made_no_round_leaves_losses_and_images_as_they_were(tmp_path):
    """It was interrupted after its last round, and its evaluations were made up for."""
    made, rest = server(tmp_path / "made", 0, 1), server(tmp_path / "rest")
    trained = federated(Row("surgical", "fedavg"), {}, 2, [made, rest])
    assert trained.images == 43 and trained.losses == (0.5, 0.5)
