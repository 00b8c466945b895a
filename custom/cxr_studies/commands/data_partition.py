"""The command that cuts a data set into sites: `surgagg data partition`."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from cxr_study.cli.common import console, say
from cxr_study.cli.data import Seed, Share, fraction
from cxr_study.cli.options import command

app = typer.Typer()

_COUNTED = ("patients", "images")


@command(app)
def partition(
    pool: Path,
    *,
    out: Path,
    number: Annotated[int, Option(min=1)] = 2,
    sets: str = "published",
    shared: Annotated[int | None, Option(min=0)] = None,
    share: Share = "1",
    quantity_skew: Annotated[float | None, Option(metavar="ALPHA")] = None,
    label_skew: Annotated[float | None, Option(metavar="ALPHA")] = None,
    seed: Seed = 0,
) -> None:
    """Cut one data set into sites with different patients and different classes.

    Sites have equally many patients, positive and negative ones alike, each split 70/10/20. With a
    skew their shares are drawn from a symmetric Dirichlet distribution: of all patients, or of the
    patients with the same rarest finding. Of a folder the rows with an image are used.

    Options:
        pool: Site file of the whole data set, or folder of NIH's csv and any images.
        out: New folder for the sites.
        number: Of sites.
        sets: published, drawn (from the seed), or a YAML file of class sets.
        shared: Number of classes that every site labels.
        quantity_skew: Sites of unequal size; 1: uneven, 0.3: more so.
        label_skew: Unequal shares of the patients of each finding, likewise.

    Example:
        surgagg data partition sites/nih.yaml --out nih4 --number 4 --label-skew 0.3
    """
    if out.exists():
        raise typer.BadParameter(f"--out needs a new folder; {out} exists.")
    part = fraction(share)
    from cxr_studies.partition import class_sets
    from cxr_studies.partition.partition import write_nih_pool, write_sites
    from cxr_studies.partition.skew import skew_of
    from cxr_study.data.labels.label_table import classes as class_columns
    from cxr_study.data.sites.new_site import repeated_images
    from cxr_study.data.sites.patient_split import REMEDY, SPLITS
    from cxr_study.data.sites.site_data import read_labels
    from cxr_study.data.sites.site_file import read_site_file
    from cxr_study.data.sites.split_file import read_split
    from cxr_study.reports.run.console import table

    skew = skew_of(quantity_skew, label_skew)
    new = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        whole = read_site_file(write_nih_pool(pool, out / "whole") if pool.is_dir() else pool)
        if sets == "published":
            labelled = class_sets.published(number, shared)
        elif sets == "drawn":
            known = whole.classes or class_columns(read_labels(whole))
            labelled = class_sets.draw(known, number, shared=shared or 0, seed=seed)
        else:
            labelled = class_sets.read_class_sets(Path(sets), number, shared)
        cut = write_sites(whole, out, labelled, seed=seed, share=float(part), skew=skew)
        again = repeated_images(whole, read_labels(whole))
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        for folder in new[1:]:
            with suppress(OSError):  # not empty: another process has written into it
                folder.rmdir()
        raise
    header = read_split(out / "split.csv").header
    rows = []
    for path, names in zip(cut, labelled, strict=True):
        parts, positives = (header[key][path.stem] for key in ("counts", "positives"))
        used = [parts[split] for split in SPLITS]
        in_splits = [each["images"] for each in used]
        patients, images = (sum(each[of] for each in used) for of in _COUNTED)
        counts = (f"{count:,}" for count in (patients, *in_splits, images))
        labels = ", ".join(f"{name} {positives[name]:,}" for name in names)
        rows.append([path.stem, *counts, labels])
    headings = ("site", "patients", *SPLITS, "images", "classes, positive patients")
    console.print(table("Sites", headings, rows))
    for path, missing in cut.items():
        for line in missing:
            say(f"  {path.stem}: {line}" if line != REMEDY else f"  {REMEDY}")
    for line in again:
        say(line)
    say(f"site files  {out}")
