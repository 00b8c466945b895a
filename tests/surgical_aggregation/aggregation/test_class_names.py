"""What may be a class's name, and when two names are one class."""

import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.aggregation.class_names import Spellings, fold, resemblance, unfit


@given(st.text(max_size=8))
def test_case_and_unicode_form_do_not_matter(name):
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert fold(unicodedata.normalize(form, name)) == fold(name)
    assert fold(name.casefold()) == fold(name)


def test_every_character_is_folded_to_the_end_and_other_names_stay_apart():
    characters = map(chr, range(sys.maxunicode + 1))
    assert [c for c in characters if fold(fold(c)) != fold(c)] == []
    capital, small = "J\u0323\u030c", "\u01f0\u0323"  # no such capital is one character
    assert unicodedata.normalize("NFC", capital.lower()) == unicodedata.normalize("NFC", small)
    assert fold(capital) == fold(small)
    assert len({fold(name) for name in ("Edema", "Oedema", "\u00c9dema", "Edema 2")}) == 4


def test_a_name_is_printable_text_and_no_formula():
    shapeless = ("Edema\ufe0f", "\u3164Edema", "Edema\u2800")
    for name in ("", " Edema", "Edema\n", "Ede\0ma", "\ud800", *shapeless):
        assert "printable text without outer spaces" in unfit(name)
    for start in ("=", "+", "-", "@", "\uff1d", "a;=", "a, -"):
        assert "must not begin like a formula" in unfit(f"{start}HYPERLINK(1)")
        assert unfit(f"Mass{start[-1]}left") is None


def test_length_is_counted_in_bytes_and_a_long_name_is_cut():
    for good in ("Nodule/Mass", "\u00c9panchement pleural", "\u80f8\u6c34", "\u00e9" * 100):
        assert unfit(good) is None
    assert "may have 200 bytes in UTF-8; 'é" in unfit("\u00e9" * 100 + "s")
    assert unfit("four", longest=3).endswith("'four' has 4")
    assert len(unfit("x" * 70_000)) < 200
    assert len(unfit("\0" * 70_000)) < 400


def test_of_several_spellings_the_first_is_the_one():
    known = Spellings(["Edema"])
    known.add(["Mass", "Edema"])
    assert known.twin("EDEMA") == "Edema" and known.twin("mass") == "Mass"
    assert known.twin("Edema") is known.twin("Hernia") is None
    assert "Mass" in known and "mass" not in known and len(known) == 2
    known.add(["edema"])  # two that are there already are both themselves
    assert known.twin("Edema") is known.twin("edema") is None
    assert known.twin("EDEMA") == "Edema"


def test_names_without_letters_and_digits_resemble_no_other():
    assert resemblance("%", "&") is None and resemblance("%", "Edema") is None
    assert resemblance("Mass", "masses") == "the same words"
