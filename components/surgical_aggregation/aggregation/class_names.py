"""Class names: which are allowed, and which are two spellings of one class."""

import difflib
import re
import unicodedata
from collections.abc import Iterable

LONGEST = 200
"""Default limit of a class name, in bytes of UTF-8."""

_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters without a shape that Python counts as printable."""

_LOOK_ALIKE = 0.85  # edit ratio: Oedema and Edema 0.91, Pneumonitis and Pneumonia 0.80


def fold(name: str) -> str:
    r"""Normalize a name: spellings that differ only in case or Unicode form become equal.

    Example:
        >>> fold("E\u0301PANCHEMENT") == fold("\u00e9panchement")
        True
    """
    once = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", once).casefold()  # case folding can undo the normal form


def unfit(name: str, longest: int = LONGEST) -> str | None:
    """Why a text cannot be a class name; None: it can.

    Names become headers of csv columns, where a spreadsheet would run a formula, also after a
    separator.

    Args:
        name: The text.
        longest: Largest size in bytes of UTF-8. Default 200.
    """
    if not name.isprintable() or _INVISIBLE.search(name) or name != name.strip() or not name:
        return f"a class name must be printable text without outer spaces; got {shown(name)}"
    if re.search(r"(?:^|[;,])\s*[=+@-]", fold(name)):
        return f"a class name must not begin like a formula, with =, +, - or @; got {shown(name)}"
    if (size := len(name.encode())) > longest:
        return f"a class name may have {longest} bytes in UTF-8; {shown(name)} has {size}"
    return None


def shown(name: str) -> str:
    """A class name for a message: quoted, and cut if long."""
    return repr(name if len(name) <= 2 * LONGEST else f"{name[:40]}...")


class Spellings:
    """The known spellings of classes."""

    def __init__(self, names: Iterable[str] = ()):
        self._names: set[str] = set()
        self._by_fold: dict[str, str] = {}
        self.add(names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def add(self, names: Iterable[str]) -> None:
        """Add spellings; for several of one class, `twin` returns the first."""
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._by_fold.setdefault(fold(name), name)

    def twin(self, name: str) -> str | None:
        """The known other spelling of class `name`, if there is one."""
        return None if name in self._names else self._by_fold.get(fold(name))


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two of `names` that are spellings of one class; None: there are none."""
    known = Spellings()
    for name in names:
        if (twin := known.twin(name)) is not None:
            return twin, name
        known.add([name])
    return None


def resemblance(name: str, other: str) -> str | None:
    """Why two names may mean one class, by their spelling; None: no resemblance.

    Example:
        >>> resemblance("Pneumonia", "Pneumonie")
        'nearly the same spelling'
    """
    words, others = _words(name), _words(other)
    if not (words and others):
        return None
    if words == others:
        return "the same words"
    if words < others or others < words:
        return "one contains the other"
    if re.findall(r"\d+", name) != re.findall(r"\d+", other):
        return None
    letters = difflib.SequenceMatcher(None, _letters(name), _letters(other))
    bounds = (letters.real_quick_ratio, letters.quick_ratio)  # from above, and fast
    alike = all(ratio() >= _LOOK_ALIKE for ratio in (*bounds, letters.ratio))
    return "nearly the same spelling" if alike else None


def _letters(name: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", fold(name)))


def _words(name: str) -> frozenset[str]:
    """Folded words in the singular."""
    words = _letters(name).split()
    return frozenset(re.sub("(?<=ss)es$|(?<=[^s])s$", "", word) for word in words)
