"""The command that writes a job to submit: `surgagg job`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cxr_study.cli.run import Preset, Settings, Sites, say, split
from cxr_study.jobs import job_templates, settings
from cxr_study.jobs.code_shipping import WAYS
from surgical_aggregation.aggregation.strategy import STRATEGIES

EPILOG = "Example:  surgagg job personalised --strategy fedbn --sites a,b --out my-job"


def job(
    method: Annotated[str, typer.Argument(help=f"One of {', '.join(job_templates.JOBS)}.")],
    out: Annotated[Path, typer.Option(help="New folder for the job.")],
    strategy: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(STRATEGIES)}. Default: the method's own.")
    ] = None,
    sites: Sites = "nih,chexpert",
    preset: Preset = None,
    knobs: Settings = None,
    code: Annotated[
        str, typer.Option(help="; ".join(f"{way}: {needs}" for way, needs in WAYS.items()) + ".")
    ] = "marked",
) -> None:
    """Write the job folder of a method, ready to run or submit.

    It names classes of this software, and --code says how they get to the server and the sites.
    """
    for_all, per_site = settings.parse(knobs or [])
    job_templates.configure(
        method,
        out,
        sites=split(sites),
        strategy=strategy,
        preset=preset,
        settings=for_all,
        per_site=per_site,
        code=code,
    )
    say(f"job      {out}")
    say(f"submit   nvflare job submit -j {out}")
