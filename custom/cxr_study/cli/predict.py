"""The command that predicts images: `surgagg predict`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from typer import Argument, Option

from cxr_study.cli.model_use import Arguments, Model, OwnSite, Site, opened
from cxr_study.cli.run import console, say
from cxr_study.common.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from cxr_study.models.loaded_model import LoadedModel

EPILOG = (
    "Example:  surgagg predict runs/demo images --out p.csv      "
    "surgagg predict best.npz a.png b.dcm --out e.csv --explain 3      "
    "surgagg predict runs/skin/surgical test --out t.csv --own-site skin_photos:SkinPhotos "
    "--arg site=north --arg folder=data"
)


def predict(
    model: Model,
    images: Annotated[
        list[Path],
        Argument(
            help="Image files (DICOM too), folders of them, csv files that name them; of a Site "
            "of your own its splits: train, validation, test."
        ),
    ],
    out: Annotated[Path, Option(help="Table to write, .csv.")],
    site: Site = None,
    explain: Annotated[
        int, Option(min=0, help="A page per image, with heat maps of so many classes; 0: none.")
    ] = 0,
    site_file: Annotated[
        Path | None, Option(help="Of the site that the images are from: its 'bits' are theirs.")
    ] = None,
    raw: Annotated[bool, Option("--raw", help="Without the model's calibration.")] = False,
    force: Annotated[bool, Option(help="Replace --out if it exists.")] = False,
    own_site: OwnSite = None,
    arguments: Arguments = None,
) -> None:
    """Predict images: a row per image, a column per class.

    A file that cannot be read is skipped and listed beside --out, with the reason. An image that
    does not look like a frontal chest radiograph is predicted, and flagged in the column 'flags'.
    """
    if out.suffix != ".csv":
        raise ValueError(f"predictions need a file .csv; got {out}.")
    if out.exists() and not force:
        raise FileExistsError(
            f"predictions need a new file; {out} exists. Give another, or --force."
        )
    loaded = opened(model, site, own_site, arguments)
    calibration = None if raw else loaded.calibration
    began = time.monotonic()
    if own_site is None:
        number, said = _files(loaded, images, out, site_file, explain, calibrated=not raw)
    else:
        number, said = _splits(loaded, images, out, explain, calibrated=not raw), []
    rate = f", {number / (time.monotonic() - began):.0f} a second" if number >= 100 else ""
    say(f"model        {loaded.file}: {counted(len(loaded.classes), 'class', 'classes')}")
    say(f"predictions  {out}: {counted(number, 'image')}{rate}")
    for name, why in loaded.facts.never_learned.items():
        say(f"never learned  {name}: {why}; its column means nothing")
    if calibration is not None:
        say(
            f"calibrated   {len(calibration.classes)} of {len(loaded.classes)} classes, on "
            f"{', '.join(calibration.sites)}; thresholds by {calibration.threshold_rule}"
        )
    else:
        say("calibrated   no; see surgagg model calibrate" if not raw else "calibrated   no")
    for line in said:
        say(line)
    say("Research use only; not for diagnosis.", console)
    if not number:
        raise ValueError("no image could be predicted.")


def _files(
    loaded: LoadedModel,
    images: list[Path],
    out: Path,
    site_file: Path | None,
    explain: int,
    *,
    calibrated: bool,
) -> tuple[int, list[str]]:
    """Predict image files; how many were, and what is said of them."""
    from cxr_study.common import progress
    from cxr_study.data.sites.site_file import read_site_file
    from cxr_study.models.images_to_predict import find
    from cxr_study.models.loaded_model import FLAGS, NEVER_LEARNED

    bits = None if site_file is None else read_site_file(site_file).bits
    found = find(images)
    flags: Counter[str] = Counter()
    flagged, pages, predicted, problems = 0, 0, 0, []
    with _opened_table(out) as append, progress.bar("predicting images") as report:
        for chunk, table in loaded.predict_chunks(found, calibrated=calibrated, bits=bits):
            append(table)
            problems += [one for one in chunk.values() if one.pixels is None]
            for text in table[FLAGS]:
                kinds = {flag.partition(":")[0] for flag in text.split("; ")}
                kinds -= {"", NEVER_LEARNED}
                flagged += bool(kinds)
                flags.update(sorted(kinds))
            if explain:
                from cxr_study.reports.explanation import explanation_page

                pages += len(explanation_page.write(loaded, chunk, table, explain, _pages(out)))
            predicted += len(table)
            report(predicted + len(problems), len(found))
    _list_problems([(one.image, one.problem) for one in problems], out)
    said = []
    if flagged:
        shown = ", ".join(f"{number} {flag}" for flag, number in flags.most_common())
        said.append(f"flagged      {flagged} ({shown}); see the column '{FLAGS}'")
    if problems:
        said.append(
            f"skipped      {len(problems)}, first {problems[0].image}: {problems[0].problem}. All: "
            f"{_problems(out)}"
        )
    if pages:
        said.append(f"explained    {counted(pages, 'page')} in {_pages(out)}")
    return predicted, said


def _splits(
    loaded: LoadedModel, splits: list[Path], out: Path, explain: int, *, calibrated: bool
) -> int:
    """Predict splits of a Site of somebody's own; how many images that were."""
    from surgical_aggregation.site.contract.site import Split

    known, asked = get_args(Split), [str(split) for split in splits]
    if explain or not {*asked} <= {*known}:
        raise ValueError(
            f"of a Site of your own, splits are predicted ({', '.join(known)}), without --explain; "
            f"got {', '.join(asked)}."
        )
    with _opened_table(out) as append:
        tables = [
            loaded.predict_own(split, calibrated=calibrated) for split in known if split in asked
        ]
        for table in tables:
            append(table)
    return sum(map(len, tables))


@contextmanager
def _opened_table(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Write a table in parts, whole or not at all; floats are read back bit for bit."""
    from cxr_study.common.files import whole

    with whole(path) as half, half.open("w", encoding="utf-8", newline="") as file:

        def append(table: pd.DataFrame) -> None:
            table.to_csv(file, index=False, header=not file.tell(), lineterminator="\n")

        yield append


def _problems(out: Path) -> Path:
    return out.with_name(f"{out.stem}.problems.csv")


def _pages(out: Path) -> Path:
    return out.with_name(f"{out.stem}-explained")


def _list_problems(problems: list[tuple[str, str]], out: Path) -> None:
    import pandas as pd

    from cxr_study.common.files import replace

    if problems:
        table = pd.DataFrame(problems, columns=["image", "problem"])
        replace(_problems(out), table.to_csv(index=False, lineterminator="\n"))
    else:
        _problems(out).unlink(missing_ok=True)
