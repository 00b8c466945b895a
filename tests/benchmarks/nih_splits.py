"""Read the full official table of NIH ChestX-ray14, and split and cut its patients.

python tests/benchmarks/nih_splits.py <folder of Data_Entry_2017*.csv[.gz] and the two lists>
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from cxr_study.data.readers import nih, official_files
from cxr_study.data.sites.patient_split import split_by_lists, split_patients, split_sites
from cxr_study.data.sites.split_file import apply_split, counts, read_split, write_split


def timed(what, function, *arguments, **keywords):
    start = time.perf_counter()
    result = function(*arguments, **keywords)
    print(f"{what:44} {time.perf_counter() - start:6.2f} s")
    return result


def main(folder):
    before = peak()
    table = timed("read the table", nih.read, official_files("nih", folder)[0])
    print(f"{len(table):,} images, {table['patient'].nunique():,} patients")
    for name in nih.NIH_CLASSES:
        print(f"  {name:20} {int((table[name] == 1).sum()):7,}")
    print(f"  {'No Finding':20} {int((table[list(nih.NIH_CLASSES)] == 0).all(axis=1).sum()):7,}")

    whole = timed("70/10/20", split_patients, table, seed=0)
    print(f"  {counts(whole, table)}")
    lists = [folder / "train_val_list.txt", folder / "test_list.txt"]
    parts = timed("read the official lists", nih.official_lists, *lists)
    official = timed(
        "official lists", split_by_lists, table, parts.set_index("image")["part"], seed=0
    )
    print(f"  {counts(official, table)}")
    with tempfile.TemporaryDirectory() as scratch:
        csv = Path(scratch, "split.csv")
        timed("write the split file", write_split, whole, table, csv, scheme="70/10/20", seed=0)
        print(f"  {csv.stat().st_size / 1e6:.2f} MB")
        split = timed("read it", read_split, csv)
        timed("compare it with the labels and apply it", apply_split, split, table, "nih")
    for k in (2, 3, 4, 5, 6, 8, 10):
        names = [f"site-{number}" for number in range(1, k + 1)]
        cut = timed(f"{k} sites, each 70/10/20", split_sites, table, names, seed=0)
        images = cut["patient"].map(table["patient"].value_counts()).groupby(cut["site"]).sum()
        patients = cut.groupby("site")["patient"].nunique()
        shared = int(cut.groupby("patient")["site"].nunique().gt(1).sum())
        print(
            f"  patients {patients.min():,}-{patients.max():,} a site, images {images.min():,}-"
            f"{images.max():,}; patients at two sites or in two splits: "
            f"{shared + int(cut['patient'].duplicated().sum())}"
        )
    print(f"peak memory {peak():.0f} MiB, of which imports {before:.0f}")


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
