"""Which columns of a csv are classes, where the file and not the data set decides that."""

from collections.abc import Collection, Sequence
from pathlib import Path

from cxr_study.common.spelling import key
from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.vocabulary import class_name

_NO_CLASS = {"no finding", "normal"}


def class_columns(
    csv: Path, header: Sequence[str], descriptors: Collection[str], dataset: str
) -> dict[str, str]:
    """Tell the classes of a csv from its other columns.

    Args:
        csv: For the errors.
        header: Names of all columns.
        descriptors: Names that are no classes.
        dataset: Whose names count, see `vocabulary.class_name`.

    Returns:
        Name of the column -> name of the class: canonical where the catalogue knows it, else as it
        stands. "No Finding" and "Normal" are no class.

    Raises:
        TableError: A column has no name, is named like a descriptor in another case, or two are
            the same class; names them.
    """
    reserved = {key(name): name for name in descriptors}
    column_of: dict[str, str] = {}  # folded name of the class -> column
    names: dict[str, str] = {}
    for position, column in enumerate(header, start=1):
        if column in descriptors or key(column) in _NO_CLASS:
            continue
        if not column:
            raise TableError(f"{csv}, line 1: column {position} has no name; name or remove it.")
        if key(column) in reserved:
            raise TableError(
                f"{csv}, line 1, column '{column}': no class can have the name of what describes "
                f"an image; write '{reserved[key(column)]}', or another name if it is a class."
            )
        name = class_name(column, dataset)
        if key(name) in column_of:
            raise TableError(
                f"{csv}, line 1: columns '{column_of[key(name)]}' and '{column}' are both the "
                f"class '{name}'; keep one, or name the other differently."
            )
        column_of[key(name)] = column
        names[column] = name
    return names
