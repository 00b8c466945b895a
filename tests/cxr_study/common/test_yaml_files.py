import pytest

from cxr_study.common.yaml_files import read_keys


class WrongError(ValueError):
    """What these tests let a file raise."""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "a.yaml").write_text(text)
        return read_keys(tmp_path / "a.yaml", "recipe", WrongError)

    return read_text


class TestReadKeys:
    def test_the_lines_of_a_file_are_read(self, read, tmp_path):
        keys = read("a: 1\nb: [x]\n")
        assert (keys.path, keys.values) == (tmp_path / "a.yaml", {"a": 1, "b": ["x"]})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: [", r"recipe .*a\.yaml cannot be read as YAML"),
            ("", r"a\.yaml: needs lines 'key: value'; got None"),
            ("- a", r"needs lines 'key: value'; got \['a'\]"),
            ("a: 1\na: 2", r"key 'a' stands twice[\s\S]*line 2"),
            ("b: {a: 1, a: 1}", "key 'a' stands twice"),
        ],
    )
    def test_a_file_without_lines_of_keys_is_refused(self, read, text, message):
        with pytest.raises(WrongError, match=message):
            read(text)

    def test_a_file_that_does_not_exist_is_named_by_kind_and_path(self, tmp_path):
        with pytest.raises(WrongError, match=rf"recipe {tmp_path}/no\.yaml does not exist"):
            read_keys(tmp_path / "no.yaml", "recipe", WrongError)


class TestKeys:
    def test_known_and_required_keys_pass(self, read):
        read("a: 1").check(("a", "b"), ("a",))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("alpha: 1\nbeat: 1", r"a\.yaml: key 'beat' is not known; nearest known: beta"),
            ("beta: 1", r"a\.yaml: needs key 'alpha'; has beta"),
            ("{}", "needs key 'alpha'; has none"),
            ("1: 2", "key '1' is not known"),
        ],
    )
    def test_unknown_and_missing_keys_are_refused(self, read, text, message):
        with pytest.raises(WrongError, match=message):
            read(text).check(("alpha", "beta"), ("alpha",))

    def test_values_are_what_they_should_be(self, read, tmp_path):
        keys = read("t: text\nn: 3\nw: two\nl: [two, one]\nm: {x: ../b}\n")
        assert keys.text("t") == "text"
        assert keys.number("n", 3) == 3
        assert keys.choice("w", ("one", "two")) == "two"
        assert keys.texts("l", ("one", "two")) == ("two", "one")
        assert keys.below("m", "lines").target("x") == tmp_path.parent / "b"
        assert keys.has("t") and not keys.has("x")

    @pytest.mark.parametrize(
        ("value", "ask", "message"),
        [
            ("3", lambda keys: keys.text("a"), r"a text \(in quotes .*\); got 3"),
            ("' '", lambda keys: keys.text("a"), "a text .*; got ' '"),
            ("2", lambda keys: keys.number("a", 3), "a whole number of 3 or more; got 2"),
            ("true", lambda keys: keys.number("a", 0), "a whole number of 0 or more; got True"),
            ("3.0", lambda keys: keys.number("a", 0), r"a whole number .*; got 3\.0"),
            ("x", lambda keys: keys.choice("a", ("one", "two")), "one or two; got 'x'"),
            ("[]", lambda keys: keys.texts("a", ("one",)), r"a list with one entry .*; got \[\]"),
            ("one", lambda keys: keys.texts("a", ("one",)), "a list with one entry .*; got 'one'"),
            (
                "[oen]",
                lambda keys: keys.texts("a", ("one",)),
                r"entries that are known \(nearest known: one\)",
            ),
            ("[[1]]", lambda keys: keys.texts("a", ("one",)), r"entries that are known .*\[1\]"),
            ("[one, one]", lambda keys: keys.texts("a", ("one",)), "each entry once; got 'one'"),
            ("3", lambda keys: keys.below("a", "lines"), "lines; got 3"),
            ("{1: x}", lambda keys: keys.below("a", "lines"), r"lines; got \{1: 'x'\}"),
            ("3", lambda keys: keys.target("a"), "a text .*; got 3"),
        ],
    )
    def test_a_value_that_is_not_is_refused_by_file_and_key(self, read, value, ask, message):
        with pytest.raises(WrongError, match=rf"a\.yaml: key 'a' needs {message}"):
            ask(read(f"a: {value}"))

    def test_lines_below_a_key_are_refused_with_both(self, read):
        lower = read("m: {n: {x: 1}}").below("m", "lines").below("n", "lines")
        with pytest.raises(WrongError, match=r"a\.yaml: key 'm', key 'n', key 'x' needs a text"):
            lower.text("x")

    def test_a_key_without_use_is_refused(self, read):
        keys = read("a: 1")
        keys.refuse(("b",), "here")
        with pytest.raises(WrongError, match=r"a\.yaml: key 'a' has no use here"):
            keys.refuse(("b", "a"), "here")
