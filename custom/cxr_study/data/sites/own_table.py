"""A hospital's own csv, looked at: what its columns and words seem to mean, where its images are.

Nothing of it is used before it stands in a site file, where a person can see and change it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten

from cxr_study.data.images.image_files import locate, walk
from cxr_study.data.labels.csv_columns import CsvColumns, read_columns
from cxr_study.data.labels.csv_file import SEPARATORS, CsvFile, guess_encoding, open_csv
from cxr_study.data.labels.label_table import BLANK, POSITIVE, VIEWS, classes
from cxr_study.data.labels.vocabulary import is_class, known_alike
from cxr_study.data.readers.cell_values import PROBABILITY
from cxr_study.data.readers.table import read
from cxr_study.data.readers.table_layout import (
    IGNORED,
    KINDS,
    LABELS,
    SEXES,
    TableLayout,
    word_fault,
)

_NAMES = {
    "image": "image, path, file, filename, file name, image name, image index, image id, imageid, "
    "image path, image file, bild, bildname, bilddatei, datei, dateiname, bildpfad, pfad, fichier, "
    "nom du fichier, imagen, archivo, 图像, 影像, 文件名",
    "patient": "patient, patient id, patientid, patient nr, patient no, patient number, pat nr, "
    "patientennummer, patienten nr, patienten id, pat id, patnr, patid, pid, mrn, subject, "
    "subject id, id patient, numéro patient, paciente, id paciente, 患者, 患者编号, 病人编号",
    "view": "view, view position, viewposition, projection, projektion, aufnahme, ansicht, "
    "strahlengang, incidence, proyección, 体位, 投照体位",
    "sex": "sex, gender, patient sex, patient gender, geschlecht, sexe, sexo, 性别",
    "age": "age, alter, patient age, age years, edad, âge, 年龄",
}
"""What a column is -> how hospitals call it, folded."""

_WORDS = {
    "1": "1.0 yes ja oui sí si true wahr vrai verdadero positive positiv present vorhanden x y j "
    "是 有 阳性",
    "0": "0.0 no nein non false falsch faux falso negative negativ absent keine keiner kein n "
    "否 无 阴性",
    "-1": "-1.0 uncertain unklar fraglich possible möglich ? incierto incertain 可疑",
    "": "k.a. n/a na nan null - unknown unbekannt u",
}
_SEX_WORDS = {
    "F": "f w weiblich female frau femme féminin mujer femenino woman 女",
    "M": "m männlich male mann homme masculin hombre masculino man 男",
    "": "u d o unknown unbekannt divers other - k.a. n/a",
}
_VIEW_WORDS = {
    "PA": "pa p.a. p-a dorsoventral",
    "AP": "ap a.p. a-p ventrodorsal liegend",
    "frontal": "frontal front",
    "lateral": "lateral lat seitlich seitl. ll rl profil perfil 侧位",
    "other": "other oblique schräg",
    "": "unknown unbekannt - k.a. n/a",
}
_FEW = 6  # different texts of a column that may be a class
_LISTED = 5  # unknown words of a column that are told
_SAMPLE = 200  # images that tell the folder


class OwnTableError(ValueError):
    """What a hospital's csv means, or where its images are, cannot be told."""


@dataclass(frozen=True)
class OwnTable:
    """What a csv seems to be.

    Attributes:
        csv: The file.
        rows: Of the file.
        repeated: Rows that say what an earlier one does.
        separator: What stands between its cells, as a word.
        encoding: Of a file that is not Unicode.
        shown: Some of its words that show whether the encoding is right.
        columns: Its columns that are no classes -> what they are: one of `KINDS`, or ignored.
        positives: Its classes -> positive labels; none while anything is unknown or missing.
        words: Words that occur and stand for another -> what they stand for.
        unknown: Column -> words in it that mean nothing yet, the most frequent first.
        blank: Cells of classes that are blank.
        missing: What is needed and no column seems to be -> columns that it may be.
        images: Text of the cells of the image column.
    """

    csv: Path
    rows: int
    repeated: int
    separator: str
    encoding: str | None
    shown: Sequence[str]
    columns: Mapping[str, str]
    positives: Mapping[str, int]
    words: Mapping[str, str]
    unknown: Mapping[str, Sequence[str]]
    blank: int
    missing: Mapping[str, Sequence[str]]
    images: Sequence[str]


def find_csv(given: Path) -> Path:
    """The csv of a folder, or the one that is given.

    Raises:
        OwnTableError: There is none, or more than one.
    """
    if given.is_file():
        return given
    if not given.is_dir():
        raise OwnTableError(f"needs a csv, or a folder with one; {given} does not exist.")
    found = [
        Path(parent, name)
        for parent, names in walk(str(given))
        for name in sorted(names)
        if name.lower().endswith((".csv", ".csv.gz", ".tsv"))
    ]
    if len(found) == 1:
        return found[0]
    has = f"it has {', '.join(str(path) for path in found[:5])}" if found else "it has none"
    raise OwnTableError(f"needs a folder with one csv, or the csv itself; {given}: {has}.")


def look(csv: Path, said: TableLayout, images: Path | None = None) -> OwnTable:
    """Look at a csv.

    Args:
        csv: The file.
        said: What a person says of it, as in a site file. An encoding that is not said is told by
            the bytes.
        images: Folder below which an absolute path of the csv must lead; None: the csv's.

    Raises:
        TableError: The file cannot be read as csv, or rows of an image contradict each other.
        OwnTableError: A person speaks of a column that there is not, or what a column or a word
            is said to be is nothing that it can be; or labels stand beside listed findings, and
            nobody says what they are.
    """
    columns, words, encoding, listing = said.columns, said.words, said.encoding, said.listing
    shown: list[str] = []
    if encoding is None:
        encoding, shown = guess_encoding(csv)
    file = open_csv(csv, encoding=encoding)
    for name in (*columns, *listing):
        if name not in file.header:
            raise OwnTableError(
                f"{csv} has no column '{name}'; its columns are {', '.join(file.header)}."
            )
    for name, what in columns.items():
        if what not in (*KINDS, IGNORED):
            raise OwnTableError(f"'{name}' can be {', '.join(KINDS)} or {IGNORED}; got '{what}'.")
    for word, meaning in words.items():
        if fault := word_fault(meaning):
            raise OwnTableError(f"'{word}' can stand for {fault}; got '{meaning}'.")
    kinds, missing = _kinds(file, columns)
    used = [name for name in file.header if kinds.get(name) != IGNORED]
    cells = read_columns(file, used, several_lines=used)
    image = next((name for name, kind in kinds.items() if kind == "image"), None)
    if image is not None:
        ending = re.escape(cells[image].map(lambda name: Path(name).suffix).mode()[0]) or "(?!)"
        for name in used:  # a quote too many makes a cell of whole rows
            row = cells[name].str.contains(rf"\n.*{ending}\"?(?:{file.separator}|\n|$)")
            cells.refuse(row, name, "the cell has a whole row in it; is there a quote too many?")
    meant = {word.casefold(): meaning for word, meaning in words.items()}
    occurring = dict(words) if listing else {}  # some may be findings
    unknown: dict[str, list[str]] = {}
    positives, blank, repeated = {}, 0, 0
    for name in cells.texts:
        kind = kinds.get(name)
        if kind in ("image", "patient") or name in listing[:1]:
            continue
        counts = _counts(cells, name)
        meanings = {text: _meaning(text, kind, meant) for text in counts}
        if kind is None and len(listing) == 1 and {"0", "1"} <= set(meanings.values()):
            raise OwnTableError(
                f"column '{name}' has labels beside the findings that '{listing[0]}' lists. Say "
                f"--value '{name}' where they are those of the findings, else --column "
                f"'{name}=ignored'."
            )
        probable = said.threshold is not None and all(
            PROBABILITY.fullmatch(text) or meaning is not None for text, meaning in meanings.items()
        )
        labels = probable or _may_be_class(name, meanings)
        if kind is None and name not in listing and (listing or not labels):
            kinds[name] = IGNORED
            continue
        odd = [text for text, meaning in meanings.items() if meaning is None]
        if kind is None:
            odd = [text for text in odd if not PROBABILITY.fullmatch(text)]
        if odd:
            unknown[name] = odd
        occurring |= {
            text: m
            for text, m in meanings.items()
            if m is not None and m != text and not (kind and m.casefold() == text.casefold())
        }
        if kind is None:
            blank += sum(number for text, number in counts.items() if meanings[text] == "")
    if not (missing or unknown):
        table = read(csv, replace(said, columns=kinds, words=occurring, encoding=encoding), images)
        labels, repeated = table[classes(table)], table.attrs["repeated"]
        positives = (labels == POSITIVE).sum().to_dict()
        blank = int((labels == BLANK).to_numpy().sum())
    return OwnTable(
        csv=csv,
        rows=len(cells.lines),
        repeated=repeated,
        separator=SEPARATORS[file.separator],
        encoding=encoding,
        shown=shown,
        columns={name: kinds[name] for name in file.header if name in kinds},
        positives=positives,
        words=occurring,
        unknown=unknown,
        blank=blank,
        missing=missing,
        images=[] if image is None else list(dict.fromkeys(cells[image])),
    )


def find_images(folder: Path, images: Sequence[str], nested: bool = False) -> tuple[Path, int]:
    """Find the folder below which the images lie where the csv says.

    Args:
        folder: Where to look, at any depth.
        images: Their paths as the csv has them.
        nested: Whether they lie in folders that the csv does not name: then it is `folder` itself.

    Returns:
        The folder, and how many of the images are there.

    Raises:
        OwnTableError: None is found, or some lie elsewhere below `folder`.
        ImageError: Two files could be an image.
    """
    paths = [image.replace("\\", "/").removeprefix("./") for image in images]
    folders = [folder] if nested else [folder, *(Path(parent) for parent, _ in walk(str(folder)))]
    best = max(folders, key=lambda each: sum(map(bool, locate(each, paths[:_SAMPLE], 0, nested))))
    files = locate(best, paths, 0, nested)
    missing = [path for path, file in zip(paths, files, strict=True) if file is None]
    if len(missing) == len(paths):
        raise OwnTableError(
            f"none of the {len(paths)} images lie below {folder}, first {images[0]}. Name the "
            "folder below which they lie as the csv says (--images)."
        )
    if not nested and any(locate(folder, missing, 0, True)):
        raise OwnTableError(
            f"{len(missing)} of {len(paths)} images do not lie below {best} as the csv says; some "
            "lie in other folders. Say --nested to take each where it lies, or name the one folder "
            "that counts (--images)."
        )
    return best, len(paths) - len(missing)


def _kinds(
    file: CsvFile, given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Sequence[str]]]:
    """Columns that are no class by their names, and what is needed and not found."""
    kinds = dict(given)
    missing: dict[str, Sequence[str]] = {}
    for kind in KINDS:
        if kind in given.values():
            continue
        found = [n for n in file.header if n not in given and _folded(n) in _SPELLINGS[kind]]
        exact = [n for n in found if n == kind] or found
        if len(exact) == 1:
            kinds[exact[0]] = kind
        elif kind in ("image", "patient"):
            missing[kind] = exact or [n for n in file.header if n not in kinds]
    for name in file.header:
        if not name and name not in kinds:
            kinds[name] = IGNORED  # a spreadsheet's numbering
    return kinds, missing


def _counts(cells: CsvColumns, name: str) -> dict[str, int]:
    """How often each text occurs in a column, the most frequent first."""
    return dict(Counter(cells[name].tolist()).most_common())


def _meaning(text: str, kind: str | None, given: Mapping[str, str]) -> str | None:
    """What a cell stands for; None where nobody knows."""
    folded = text.casefold()
    if folded in given:
        return given[folded]
    if not text:
        return ""
    if kind == "age":
        return text if re.fullmatch(r"\d+([.,]\d*)?", text) else None
    known = {"sex": SEXES, "view": VIEWS}.get(kind or "", LABELS)
    if text in known:
        return text
    return _MEANT[kind or "label"].get(folded)


def _may_be_class(name: str, said: Mapping[str, str | None]) -> bool:
    """Whether a column is one of labels: all or some of its few texts are, or its name is one."""
    texts = [text for text, meaning in said.items() if meaning != ""]
    if not texts:
        return False
    if any(said[text] is not None for text in texts) and len(texts) <= _FEW:
        return True
    return is_class(name) or any(name.casefold() == other.casefold() for other in known_alike(name))


def _folded(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.replace("_", " "))).casefold()


def _by_word(meanings: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in meanings.items() for word in words.split()}


def listed(words: Iterable[str]) -> str:
    """Name some words, the first of many."""
    some = [f"'{shorten(word, 60, placeholder=' ...')}'" for word in words]
    more = f" and {len(some) - _LISTED} more" if len(some) > _LISTED else ""
    return ", ".join(some[:_LISTED]) + more


_SPELLINGS = {kind: frozenset(names.split(", ")) for kind, names in _NAMES.items()}
_MEANT = {"label": _by_word(_WORDS), "sex": _by_word(_SEX_WORDS), "view": _by_word(_VIEW_WORDS)}
