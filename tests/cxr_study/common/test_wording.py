"""Numbers, names and notices in words."""

from cxr_study.common.wording import counted, duration, format_rounds, join_names, shortened


def test_nouns_follow_their_number():
    assert [counted(n, "image") for n in (0, 1, 1234)] == ["0 images", "1 image", "1,234 images"]
    assert [counted(n, "class", "classes") for n in (1, 2)] == ["1 class", "2 classes"]


def test_durations_have_the_two_largest_units():
    texts = {
        0.04: "0.0 s",
        59.9: "59.9 s",
        59.96: "1 min 00 s",
        123.4: "2 min 03 s",
        7260: "2 h 01 min",
    }
    assert {seconds: duration(seconds) for seconds in texts} == texts


def test_rounds_are_ranges():
    texts = [format_rounds(spans) for spans in ([], [(2, 2)], [(0, 1)], [(0, 3), (5, 5), (7, 8)])]
    assert texts == ["no round", "round 2", "rounds 0 and 1", "rounds 0 to 3, 5, 7 and 8"]


def test_names_are_joined_as_in_a_sentence_and_of_many_the_rest_counted():
    texts = {"": "", "a": "a", "ab": "a and b", "abc": "a, b and c"}
    assert {names: join_names(names) for names in texts} == texts
    assert shortened("abc", most=3) == "a, b and c"
    assert shortened("abcd", most=3) == "a, b, c and 1 more"
