"""Numbers, names and notices in words."""

from cxr_study.common.wording import counted, listed, shortened


def test_nouns_follow_their_number():
    assert [counted(n, "image") for n in (0, 1, 1234)] == ["0 images", "1 image", "1,234 images"]
    assert [counted(n, "class", "classes") for n in (1, 2)] == ["1 class", "2 classes"]


def test_names_are_joined_as_in_a_sentence_and_of_many_the_rest_counted():
    texts = {"": "", "a": "a", "ab": "a and b", "abc": "a, b and c"}
    assert {names: listed(names) for names in texts} == texts
    assert shortened("abc", most=3) == "a, b and c"
    assert shortened("abcd", most=3) == "a, b, c and 1 more"
