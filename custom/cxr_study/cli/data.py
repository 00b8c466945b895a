"""The commands about data: `surgagg data ...`, and `surgagg classes`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cxr_study.common.spelling import nearest
from cxr_study.data.readers import DATASETS
from cxr_study.data.readers.official_files import official_files

if TYPE_CHECKING:
    from cxr_study.data.sites.site_file import SiteFile

app = typer.Typer(
    no_args_is_help=True,
    help="From the official files of a data set to sites that are ready to train.",
    epilog="Example:  surgagg data site nih data/nih sites/nih.yaml      Exit codes: 0 done, "
    "1 more bad images or unresolved names than allowed, 2 wrong use.",
)
console = Console()

SiteFiles = Annotated[list[Path], typer.Argument(help="Site files, e.g. sites/*.yaml.")]
Size = Annotated[int, typer.Option(help="Side of the images, pixels.", min=8)]
Seed = Annotated[int, typer.Option(help="Another seed, another result.", min=0)]
Share = Annotated[
    str, typer.Option(help="Of the training patients to use, e.g. 1/8; the others stay unused.")
]


@app.command(
    epilog="Example:  surgagg data site chexpert data/CheXpert-v1.0-small sites/stanford.yaml"
)
def site(
    dataset: Annotated[str, typer.Argument(help=f"{', '.join(DATASETS)}.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the official download.")],
    site_file: Annotated[Path, typer.Argument(help="Site file to write; its name is the site's.")],
    seed: Seed = 0,
) -> None:
    """Write a site file for a data set, and split its patients 70/10/20.

    What the site file can say besides is in custom/README.md.
    """
    if dataset not in DATASETS:
        raise typer.BadParameter(
            f"{dataset!r} is no data set; {nearest(dataset, tuple(DATASETS))}."
        )
    if site_file.suffix != ".yaml":
        raise typer.BadParameter(f"a site file is named <site>.yaml; got {site_file}.")
    if site_file.exists():
        raise typer.BadParameter(f"{site_file} exists; remove it, or give another name.")
    labels, metadata, images = official_files(dataset, folder)
    from cxr_study.data.sites.site_file import read_site_file, write_site_file

    site_file.parent.mkdir(parents=True, exist_ok=True)
    split_file = site_file.with_name(f"{site_file.stem}_split.csv")
    write_site_file(
        site_file,
        dataset=dataset,
        labels=labels,
        metadata=metadata,
        images=images,
        split=split_file,
    )
    try:
        _refuse_without_images(read_site_file(site_file))
        _split(read_site_file(site_file), Fraction(1), seed, None, None)
    except ValueError:
        site_file.unlink()
        raise
    _say(f"site file  {site_file}")


@app.command("split", epilog="Example:  surgagg data split sites/nih.yaml --seed 1 --share 1/8")
def split_patients(
    site_file: Annotated[Path, typer.Argument(help="Its key 'split' says where to write.")],
    seed: Seed = 0,
    share: Share = "1",
    nih_lists: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="TRAIN_VAL TEST", help="NIH's train_val_list.txt and test_list.txt."),
    ] = None,
    mimic_split: Annotated[
        Path | None, typer.Option(help="MIMIC's mimic-cxr-2.0.0-split.csv.gz.")
    ] = None,
) -> None:
    """Put every patient of a site in train, validation or test: 70/10/20, or as officially split.

    The split is stratified by "the patient has any positive label". An earlier split is replaced.
    """
    if nih_lists is not None and mimic_split is not None:
        raise typer.BadParameter("--nih-lists and --mimic-split exclude each other.")
    part = _fraction(share)
    from cxr_study.data.sites.site_file import read_site_file

    _split(read_site_file(site_file), part, seed, nih_lists, mimic_split)


@app.command(
    epilog="Example:  surgagg data sites sites/nih.yaml --out sites4 --number 4 --shared 2"
)
def sites(
    site_file: Annotated[Path, typer.Argument(help="Site file of the whole data set.")],
    out: Annotated[Path, typer.Option(help="New folder for the sites.")],
    number: Annotated[int, typer.Option(help="Of sites.", min=1)] = 2,
    sets: Annotated[
        str, typer.Option(help="published, drawn (from the seed), or a YAML file of class sets.")
    ] = "published",
    shared: Annotated[
        int | None, typer.Option(help="Number of classes that every site holds.", min=0)
    ] = None,
    share: Share = "1",
    seed: Seed = 0,
) -> None:
    """Cut one data set into sites with different patients and different classes.

    Sites have equally many patients, positive and negative ones alike, each split 70/10/20.
    """
    if out.exists():
        raise typer.BadParameter(f"--out needs a new folder; {out} exists.")
    part = _fraction(share)
    from rich.table import Table

    from cxr_study.data.labels import class_sets
    from cxr_study.data.sites.site_file import read_site_file

    pool = read_site_file(site_file)
    if sets == "published":
        held = class_sets.published(number, shared)
    elif sets == "drawn":
        from cxr_study.data.labels.label_table import classes as class_columns
        from cxr_study.data.sites.site_data import read_labels

        known = pool.classes or class_columns(read_labels(pool))
        held = class_sets.draw(known, number, shared=shared or 0, seed=seed)
    else:
        held = class_sets.read_class_sets(Path(sets), number, shared)
    from cxr_study.data.sites.partition import write_sites
    from cxr_study.data.sites.patient_split import SPLITS
    from cxr_study.data.sites.split_file import read_split

    written = write_sites(pool, out, held, seed=seed, share=float(part))
    table = Table(title="Sites")
    for column in ("site", "patients", "train", "validation", "test", "images", "classes"):
        table.add_column(column, justify="left" if column in ("site", "classes") else "right")
    made = read_split(out / "split.csv").header["counts"]
    for path, names in zip(written, held, strict=True):
        parts = made[path.stem]
        table.add_row(
            path.stem,
            f"{sum(part['patients'] for part in parts.values()):,}",
            *(f"{parts[name]['images']:,}" for name in SPLITS),
            f"{sum(part['images'] for part in parts.values()):,}",
            ", ".join(names),
        )
    console.print(table)
    _say(f"site files  {out}")


@app.command("prepare", epilog="Example:  surgagg data prepare sites/*.yaml --size 224")
def prepare_images(site_files: SiteFiles, size: Size = 64) -> None:
    """Decode all images of sites once, so that training never does.

    Images that are missing, unreadable, constant or duplicates are listed and left out. Exit code 1
    if they are more than the site file's 'bad_images'.
    """
    from cxr_study.common import progress
    from cxr_study.data.images import image_store
    from cxr_study.data.sites.site_data import check_disjoint, load_labels, prepare
    from cxr_study.data.sites.site_file import read_site_file

    loaded = [load_labels(read_site_file(path)) for path in site_files]
    check_disjoint(loaded)
    failed = False
    for labels in loaded:
        name = labels.site.site
        with progress.bar(f"{name}: decoding images") as report:
            _, prepared = prepare(labels, size, report)
        found = prepared.index["status"].value_counts()
        _say(
            f"{name}: {found.get('ok', 0):,} of {len(prepared.index):,} images usable, "
            f"{prepared.decoded:,} decoded now; {prepared.folder}"
        )
        try:
            image_store.check_limit(
                prepared, labels.site.bad_images, f"{labels.site.path}: key 'bad_images'"
            )
        except image_store.ImageError as error:
            _say(f"surgagg: {error}", Console(stderr=True))
            failed = True
        else:
            for _, row in prepared.index[prepared.index["status"] != "ok"].iterrows():
                _say(f"  left out: {row['image']} {row['status']} {row['detail']}".rstrip())
    if failed:
        raise typer.Exit(1)


@app.command(epilog="Example:  surgagg data audit sites/*.yaml --out audit")
def audit(
    out: Annotated[Path, typer.Option(help="Folder for audit.html and audit.json.")],
    site_files: Annotated[
        list[Path] | None, typer.Argument(help="Site files, e.g. sites/*.yaml.")
    ] = None,
    shared: Annotated[
        list[Path] | None,
        typer.Option(help="Instead: what another site shared; may be repeated."),
    ] = None,
    statistics: Annotated[
        list[Path] | None,
        typer.Option(help="Instead: the statistics that a census job wrote; may be repeated."),
    ] = None,
    size: Size = 64,
    min_count: Annotated[
        int, typer.Option(help="Counts of fewer patients are not shared.", min=2)
    ] = 10,
) -> None:
    """Report what the sites' data are: counts, policies, overlap, pictures. HTML and JSON."""
    if bool(site_files) == bool(shared or statistics):
        raise typer.BadParameter("needs site files, or --shared and --statistics; not both.")
    from cxr_study.common import progress
    from cxr_study.data.census.flare_counts import from_flare_job
    from cxr_study.data.census.shareable_census import read_shared
    from cxr_study.reports.audit.write import write_audit, write_cross_site

    if site_files:
        with progress.bar("looking at images") as report:
            page = write_audit(site_files, out, size=size, min_count=min_count, progress=report)
        _say(f"shared  {out / 'shared'}  (what a site may send to others)")
    else:
        parts = [read_shared(path) for path in shared or ()]
        parts += [part for path in statistics or () for part in from_flare_job(path)]
        page = write_cross_site(parts, out)
    _say(f"audit   {page}")


@app.command(epilog="Example:  surgagg data phantom data/phantom --sites nih,mimic --corrupt 5")
def phantom(
    folder: Annotated[Path, typer.Argument(help="New folder.")],
    sites: Annotated[str, typer.Option(help="Of nih, chexpert and mimic, by comma.")] = (
        "nih,chexpert"
    ),
    images: Annotated[int, typer.Option(help="Frontal images of each site.", min=1)] = 2000,
    size: Size = 64,
    seed: Seed = 0,
    rare_at_least: Annotated[
        float, typer.Option(help="Least share of images with a finding; 0: as in the real data.")
    ] = 0.1,
    corrupt: Annotated[int, typer.Option(help="Image files of each site to damage.", min=0)] = 0,
) -> None:
    """Draw chest radiographs in the layouts of NIH ChestX-ray14, CheXpert and MIMIC with CXR-LT."""
    from cxr_study.common import progress
    from cxr_study.phantom.writers.write import write_phantom

    with progress.bar("drawing") as report:
        write_phantom(
            folder,
            sites=tuple(name.strip() for name in sites.split(",")),
            images_per_site=images,
            size=size,
            seed=seed,
            rare_at_least=rare_at_least,
            corrupt=corrupt,
            progress=report,
        )
    for site_file in sorted((folder / "sites").glob("*.yaml")):
        _say(f"site file  {site_file}")


def classes(site_files: SiteFiles) -> None:
    """Show the union head of a set of sites, who holds what, and names that look alike.

    Exit code 1 if names look alike and nobody has decided whether they are the same.
    """
    if len({path.stem for path in site_files}) < len(site_files):
        raise typer.BadParameter("sites need different names; two site files have the same.")
    from cxr_study.data.labels.class_overlap import SiteClasses, class_report, print_report
    from cxr_study.data.labels.label_table import classes as class_columns
    from cxr_study.data.sites.site_data import held_classes, read_labels
    from cxr_study.data.sites.site_file import read_site_file

    found = []
    for site_file in map(read_site_file, site_files):
        columns = class_columns(read_labels(site_file))
        found.append(
            SiteClasses(
                site_file.site,
                site_file.dataset,
                held_classes(site_file, columns),
                tuple(columns),
                site_file.distinct,
            )
        )
    report = class_report(found)
    print_report(report, console)
    if report.near_duplicates:
        raise typer.Exit(1)


def _refuse_without_images(written: SiteFile) -> None:
    from cxr_study.data.images.image_files import locate
    from cxr_study.data.sites.site_data import read_labels
    from cxr_study.data.sites.site_file import SiteFileError

    table = read_labels(written)
    files = locate(written.images, table["image"], DATASETS[written.dataset].identifying)
    if not any(files):
        raise SiteFileError(
            f"none of the {len(table)} images of these labels lie below {written.images}, first "
            f"{table['image'][0]}. Put the images there, or link them."
        )


def _split(
    written: SiteFile,
    share: Fraction,
    seed: int,
    nih_lists: tuple[Path, Path] | None,
    mimic_split: Path | None,
) -> None:
    from cxr_study.data.readers import mimic, nih
    from cxr_study.data.sites import patient_split
    from cxr_study.data.sites.site_data import read_labels, select_views
    from cxr_study.data.sites.split_file import counts, write_split

    table = select_views(written, read_labels(written))
    if nih_lists is not None:
        parts = nih.official_lists(*nih_lists).set_index("image")["part"]
        assignment = patient_split.split_by_lists(table, parts, seed=seed)
        scheme = "NIH's official lists; 1/8 of train_val's patients validate"
    elif mimic_split is not None:
        assignment = mimic.official_split(mimic_split)
        scheme = "MIMIC's official split"
    else:
        assignment = patient_split.split_patients(table, seed=seed)
        scheme = "70/10/20 of the patients, stratified by any positive label"
    if share < 1:
        assignment = patient_split.thin(assignment, table, float(share), seed=seed)
        scheme += f"; {share} of the training patients used"
    write_split(assignment, table, written.split, scheme=scheme, seed=seed)
    for name, part in counts(assignment, table).items():
        _say(f"{name:10}  {part['patients']:,} patients, {part['images']:,} images")
    _say(f"split      {written.split}")


def _fraction(text: str) -> Fraction:
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise typer.BadParameter(f"a share is above 0, at most 1, such as 1/8; got {text!r}.")
    return value


def _say(text: str, to: Console = console) -> None:
    to.print(text, markup=False, highlight=False, soft_wrap=True)
