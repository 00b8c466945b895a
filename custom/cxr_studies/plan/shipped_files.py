"""YAML files that come with the package, to be named instead of a path."""

from pathlib import Path

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest


def names(folder: str) -> tuple[str, ...]:
    """Names of the shipped files in a folder of the studies, sorted."""
    return tuple(sorted(path.stem for path in _folder(folder).glob("*.yaml")))


def find(source: str | Path, folder: str, kind: str) -> Path:
    """Path of a file that is given by its path or by the name of a shipped one.

    A path ends with ".yaml"; the folder of the shipped files is below `cxr_studies`.

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
