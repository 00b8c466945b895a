"""Find the files of a data set in the folder of its official download."""

from pathlib import Path

from cxr_study.data.readers import DATASETS


class DiscoveryError(ValueError):
    """A folder is not the official download of a data set."""


def official_files(dataset: str, folder: Path) -> tuple[Path, Path | None, Path]:
    """Find the label csv, the metadata csv and the images of an official download.

    Args:
        dataset: A key of `DATASETS`.
        folder: Of the download, unpacked; csv files may be `.csv` or `.csv.gz`.

    Returns:
        The label csv, the metadata csv (None where the data set has none) and the images folder:
        the folder `images` in it where there is one, else the folder itself.

    Raises:
        DiscoveryError: There is no such folder, nothing or more than one csv in it fits, or the
            data set has no official files.
    """
    known = DATASETS[dataset]
    if not known.labels_names:
        raise DiscoveryError(
            f"dataset '{dataset}' has no official files; write the site file by hand."
        )
    if not folder.is_dir():
        raise DiscoveryError(f"needs the folder of the download; {folder} is none.")
    images = folder / "images"
    return (
        _only(folder, known.labels_names, dataset),
        _only(folder, known.metadata_names, dataset) if known.metadata else None,
        images if images.is_dir() else folder,
    )


def _only(folder: Path, names: tuple[str, ...], dataset: str) -> Path:
    found = sorted(
        {path for name in names for end in ("", ".gz") for path in folder.glob(name + end)}
    )
    if len(found) == 1:
        return found[0]
    wanted = " or ".join(names)
    if not found:
        raise DiscoveryError(
            f"needs {wanted} (or .gz) in {folder} for dataset '{dataset}'; there is none. Give the "
            "folder that holds the official csv."
        )
    raise DiscoveryError(
        f"needs one {wanted} in {folder}; there are {', '.join(map(str, found))}. Give the folder "
        "of one of them, or move the others away."
    )
