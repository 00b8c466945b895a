"""YAML files that come with the package, given by name instead of a path."""

from pathlib import Path

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest


def names(folder: str) -> tuple[str, ...]:
    """Names of the shipped files in a folder of `cxr_studies`, sorted and without suffix."""
    return tuple(sorted(path.stem for path in _folder(folder).glob("*.yaml")))


def find(source: str | Path, folder: str, kind: str) -> Path:
    """Path of a file that is given by its path or by the name of a shipped one.

    Args:
        source: A path that ends with ".yaml", or a name.
        folder: Folder of the shipped files, below `cxr_studies`.
        kind: What the file is, for the message.

    Raises:
        InputError: It is neither; the message offers the nearest names.
    """
    if str(source) in names(folder):
        return _folder(folder) / f"{source}.yaml"
    if Path(source).suffix != ".yaml":
        raise InputError(
            f"{kind} {str(source)!r}: needs the path of a .yaml file, or a name; this is none, "
            f"{nearest(str(source), names(folder))}."
        )
    return Path(source)


def _folder(name: str) -> Path:
    return Path(__file__).parents[1] / name
