"""The command about images: `surgagg data prepare`."""

from __future__ import annotations

import typer
from rich.console import Console

from cxr_study.cli.data import SiteFiles, Size, app
from cxr_study.cli.run import say

MOST_NOTED = 20


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
    for note in check_disjoint(loaded):
        say(f"note: {note}")
    failed = False
    for labels in loaded:
        name = labels.site.site
        with progress.bar(f"{name}: decoding images") as report:
            _, prepared = prepare(labels, size, report)
        found = prepared.index["status"].value_counts()
        say(
            f"{name}: {found.get('ok', 0):,} of {len(prepared.index):,} images usable, "
            f"{prepared.decoded:,} decoded now; {prepared.folder}"
        )
        if prepared.bits and not labels.site.bits:
            fixed = f"'bits: {prepared.bits}' in the site file makes it so for good"
            say(f"{name}: 16-bit pictures are taken to have {prepared.bits} bits; {fixed}")
        try:
            image_store.check_limit(
                prepared, labels.site.bad_images, f"{labels.site.path}: key 'bad_images'"
            )
        except image_store.ImageError as error:
            say(f"surgagg: {error}", Console(stderr=True))
            failed = True
        else:
            for _, row in prepared.index[prepared.index["status"] != "ok"].iterrows():
                say(f"  left out: {row['image']} {row['status']} {row['detail']}".rstrip())
        noted = prepared.index[(prepared.index["status"] == "ok") & (prepared.index["notes"] != "")]
        if len(noted):
            say(f"{name}: {len(noted):,} images are used that may not be what they should be:")
        for _, row in noted.head(MOST_NOTED).iterrows():
            say(f"  {row['image']}: {row['notes']}")
        if len(noted) > MOST_NOTED:
            say(f"  and {len(noted) - MOST_NOTED:,} more")
        if len(noted):
            say("  'contradictions: refuse' in the site file leaves them out")
    if failed:
        raise typer.Exit(1)
