"""The commands that go on from a checkpoint: `surgagg continue` and `surgagg retire`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from cxr_study.cli.run import Force, Out, Own, Settings, run_and_report, say
from cxr_study.jobs import job_folder, settings
from cxr_study.runs.finished_run import read_site_files
from cxr_study.runs.run_check import RunFolderError, check
from cxr_study.runs.run_request import Earlier, StudyRun
from cxr_study.runs.simulator_folders import checkpoint_folder
from surgical_aggregation.checkpoints import continuation

CONTINUE_EPILOG = "Example:  surgagg continue runs/run --out runs/more --set num_rounds=6"
DECRYPT_EPILOG = (
    "Example:  surgagg decrypt best.npz --context client_context.tenseal --out plain.npz"
)
RETIRE_EPILOG = "Example:  surgagg retire best.npz Hernia 'Lung Lesion' --out without.npz"


class Start(str, Enum):
    """Model of an earlier run to start from."""

    LAST = "last"
    BEST = "best"


def continue_(
    earlier: Annotated[Path, typer.Argument(help="Folder of an earlier run.")],
    out: Out = Path("runs/continued"),
    sites: Annotated[
        str, typer.Option(help="Names, by comma: more, fewer or others. Default: the same.")
    ] = "",
    site_files: Annotated[
        Path | None, typer.Option(help="Folder of <site>.yaml. Default: the earlier run's.")
    ] = None,
    start: Annotated[
        Start, typer.Option("--from", help="Model to start from; best: with new optimizers.")
    ] = Start.LAST,
    knobs: Settings = None,
    own: Own = False,
    force: Force = False,
) -> None:
    """Go on where an earlier run ended, and write a report.

    With the job and the knobs that it had. After an interruption the rounds that are missing are
    made up, and the outcome is that of a run which was never interrupted; after a run that ended,
    as many rounds again are made.
    """
    known = read_site_files(earlier)
    if out.resolve() in (earlier.resolve(), *earlier.resolve().parents):
        raise RunFolderError(
            f"a continued run needs a folder of its own; {out} holds the run to continue. Give "
            "another --out."
        )
    job = earlier / "job"
    names = tuple(name.strip() for name in sites.split(",")) if sites else job_folder.sites(job)
    for_all, per_site = settings.parse(knobs or [])
    study = StudyRun(
        job=job,
        folder=out,
        sites=names,
        site_files=site_files or known,
        initial_body=None,
        settings={**_missing_rounds(earlier, start), **for_all},
        per_site=per_site,
        earlier=Earlier(earlier, start.value),
    )
    check(study, own=own)
    rounds = {**job_folder.knobs(job), **study.settings}["num_rounds"]
    say(f"{rounds} rounds from {study.start(study.workspace)}")
    for name in sorted(set(names) - study.states(study.workspace, names).keys()):
        say(f"{name} has no state of the earlier run to go on with: its optimizer starts afresh")
    run_and_report(study, own, f"{earlier.name}, continued on {', '.join(names)}", force)


def retire(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint of a global model.")],
    classes: Annotated[list[str], typer.Argument(help="Names of the classes.")],
    out: Annotated[Path, typer.Option(help="New file for the model without them.")],
) -> None:
    """Take classes out of a global model on purpose; nothing else ever removes one."""
    _check_new(out)
    from surgical_aggregation.checkpoints import remove_classes
    from surgical_aggregation.checkpoints.checkpoint import load, save
    from surgical_aggregation.wire import variables as wire

    model = remove_classes.retire(load(checkpoint), classes)
    save(model, out)
    left = len(wire.classes_of(model.variables))
    say(f"{out}: {left} classes, without {', '.join(sorted(set(classes)))}")
    say("A site that still labels one of them would teach it anew: change its 'classes' first.")


def decrypt(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint of an encrypted run.")],
    context: Annotated[Path, typer.Option(help="client_context.tenseal of a site.")],
    out: Annotated[Path, typer.Option(help="New file for the model in plain.")],
) -> None:
    """Open a model of homomorphically encrypted training, at a site; the server has no key."""
    _check_new(out)
    import numpy as np

    from surgical_aggregation.checkpoints.checkpoint import CheckpointError, load, save
    from surgical_aggregation.wire import variables as wire

    encrypted = load(checkpoint)
    if not any(value.dtype == np.uint8 for value in encrypted.variables.values()):
        raise CheckpointError(f"{checkpoint} is not encrypted; it can be used as it is.")
    try:
        import tenseal

        from surgical_aggregation.encryption import ciphertext
    except ImportError:
        raise CheckpointError(
            "decrypting needs tenseal, which is not installed: pip install "
            "'surgical-aggregation[he]'."
        ) from None
    try:
        opened = tenseal.context_from(context.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{context} is no encryption context: {error}.") from error
    model = ciphertext.decrypted(encrypted, opened)
    save(model, out)
    say(f"{out}: {len(wire.classes_of(model.variables))} classes")


def _check_new(out: Path) -> None:
    if out.exists():
        raise FileExistsError(f"the model needs a new file; {out} exists. Give another --out.")


def _missing_rounds(earlier: Path, start: Start) -> dict[str, object]:
    """The setting that makes up for an interruption; nothing where there was none."""
    study = StudyRun(earlier / "job", earlier, (), None, None, {})
    last = checkpoint_folder(study.workspace) / "last.npz"
    if start is Start.BEST or not last.is_file():
        return {}
    from surgical_aggregation.checkpoints.checkpoint import load

    missing = continuation.missing_rounds(load(last).manifest)
    return {"num_rounds": missing} if missing else {}
