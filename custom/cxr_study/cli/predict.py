"""The command that predicts images: `surgagg predict`."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from cxr_study.cli.run import console, say
from cxr_study.common.wording import counted

if TYPE_CHECKING:
    import pandas as pd

EPILOG = (
    "Example:  surgagg predict runs/demo images --out p.csv      "
    "surgagg predict best.npz a.png b.dcm --out e.csv --explain 3"
)


def predict(
    model: Annotated[Path, Argument(help="A run's folder, or a checkpoint such as best.npz.")],
    images: Annotated[
        list[Path],
        Argument(help="Image files (DICOM too), folders of them, csv files that name them."),
    ],
    out: Annotated[Path, Option(help="Table to write, .csv.")],
    site: Annotated[
        str | None, Option(help="Whose personal model, after fedbn or personalised.")
    ] = None,
    explain: Annotated[
        int, Option(min=0, help="A page per image, with heat maps of so many classes; 0: none.")
    ] = 0,
    site_file: Annotated[
        Path | None, Option(help="Of the site that the images are from: its 'bits' are theirs.")
    ] = None,
    raw: Annotated[bool, Option("--raw", help="Without the model's calibration.")] = False,
    force: Annotated[bool, Option(help="Replace --out if it exists.")] = False,
) -> None:
    """Predict chest X-rays: a row per image, a column per class.

    A file that cannot be read is skipped and listed beside --out, with the reason. An image that
    does not look like a frontal chest radiograph is predicted, and flagged in the column 'flags'.
    """
    import pandas as pd

    from cxr_study.common import progress
    from cxr_study.data.sites.site_file import read_site_file
    from cxr_study.models.loaded_model import load_model
    from cxr_study.models.prediction import found_images, predict_images, prediction_file

    prediction_file.check(out)
    if out.exists() and not force:
        raise FileExistsError(
            f"predictions need a new file; {out} exists. Give another, or --force."
        )
    bits = None if site_file is None else read_site_file(site_file).bits
    loaded = load_model(model, site)
    calibration = None if raw else loaded.calibration
    found = found_images.find(images)
    flags: Counter[str] = Counter()
    flagged, pages, bad = 0, 0, []
    began = time.monotonic()
    with prediction_file.opened(out) as append, progress.bar("predicting images") as report:
        done = 0
        for chunk in predict_images.predict(loaded, found, calibrated=not raw, bits=bits):
            append(chunk.table)
            bad.append(chunk.problems)
            for text in chunk.table[predict_images.FLAGS]:
                kinds = {flag.partition(":")[0] for flag in text.split("; ")}
                kinds -= {"", predict_images.NEVER_LEARNED}
                flagged += bool(kinds)
                flags.update(sorted(kinds))
            if explain:
                from cxr_study.reports.explanation import explanation_page

                pages += len(explanation_page.write(loaded, chunk, explain, _pages(out)))
            done += len(chunk.table) + len(chunk.problems)
            report(done, len(found))
    seconds = time.monotonic() - began
    problems = pd.concat(bad)
    _list_problems(problems, out)
    predicted = len(found) - len(problems)
    say(f"model        {loaded.file}: {counted(len(loaded.classes), 'class', 'classes')}")
    rate = f", {len(found) / seconds:.0f} a second" if len(found) >= 100 else ""  # else it is start
    say(f"predictions  {out}: {counted(predicted, 'image')}{rate}")
    for name, why in loaded.never_learned.items():
        say(f"never learned  {name}: {why}; its column means nothing")
    if flagged:
        shown = ", ".join(f"{number} {flag}" for flag, number in flags.most_common())
        say(f"flagged      {flagged} ({shown}); see the column '{predict_images.FLAGS}'")
    if calibration is not None:
        file = calibration.file
        say(
            f"calibrated   {len(file.classes)} of {len(loaded.classes)} classes, on "
            f"{', '.join(file.sites)}; thresholds by {file.threshold_rule}"
        )
    else:
        say("calibrated   no; see surgagg model calibrate" if not raw else "calibrated   no")
    if len(problems):
        first = problems.iloc[0]
        say(
            f"skipped      {len(problems)}, first {first['image']}: {first['problem']}. All: "
            f"{_problems(out)}"
        )
    if pages:
        say(f"explained    {counted(pages, 'page')} in {_pages(out)}")
    say("Research use only; not for diagnosis.", console)
    if not predicted:
        raise found_images.ImagesError("no image could be predicted.")


def _problems(out: Path) -> Path:
    return out.with_name(f"{out.stem}.problems.csv")


def _pages(out: Path) -> Path:
    return out.with_name(f"{out.stem}-explained")


def _list_problems(problems: pd.DataFrame, out: Path) -> None:
    from cxr_study.common.files import replace

    if problems.empty:
        _problems(out).unlink(missing_ok=True)
    else:
        replace(_problems(out), problems.to_csv(index=False, lineterminator="\n"))
