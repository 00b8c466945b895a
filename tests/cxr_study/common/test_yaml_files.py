from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, Field

from cxr_study.common import yaml_files
from cxr_study.common.yaml_files import FileModel, NeedError, read_model


class WrongError(ValueError):
    """What these tests let a file raise."""


def even(value):
    if value % 2:
        raise NeedError("an even number", "odd")
    return value


def prime(value):
    if value == 4:
        raise ValueError("4 is no prime.")
    return value


class Step(FileModel):
    minutes: int


class Recipe(FileModel):
    name: yaml_files.Text
    kind: Literal["soup", "cake"] = "soup"
    people: Annotated[int, Field(ge=1, strict=True), AfterValidator(even)] = 2
    eggs: Annotated[int, AfterValidator(prime)] = 2
    tags: Annotated[tuple[str, ...], yaml_files.EachOnce] = ()
    cook: Annotated[str, yaml_files.choice_validator(["Ada", "Bob"])] | None = None
    pages: int = Field(default=0, exclude=True)
    steps: list[Step] = Field(default_factory=list)
    times: dict[str, int] = Field(default_factory=dict)
    to: yaml_files.Target | None = None
    photo: yaml_files.ExistingFile | None = None
    album: yaml_files.ExistingFolder | None = None


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "a.yaml").write_text(text)
        return read_model(Recipe, tmp_path / "a.yaml", "recipe", WrongError)

    return read_text


class TestReadModel:
    def test_values_are_read_and_paths_are_relative_to_the_file(self, read, tmp_path, monkeypatch):
        monkeypatch.chdir("/")
        recipe = read("name: Leek\npeople: 4\nsteps: [{minutes: 3}]\nto: ../b\nphoto: a.yaml\n")
        assert (recipe.name, recipe.people, recipe.kind) == ("Leek", 4, "soup")
        assert recipe.steps == [Step(minutes=3)]
        assert (recipe.to, recipe.photo) == (tmp_path.parent / "b", tmp_path / "a.yaml")

    @pytest.mark.parametrize(("text", "message"), [
        ("a: [", r"recipe .*a\.yaml cannot be read as YAML"),
        ("", r"a\.yaml: needs lines 'key: value'; got None"),
        ("a: 1\na: 2", r"key 'a' is given twice[\s\S]*line 2"),
        ("nmae: x\npeople: 3", r"a\.yaml: key 'nmae' is not known; nearest known: name"),
        ("name: x\npages: 3", "key 'pages' is not known; nearest known: tags"),
        ("people: 2", r"a\.yaml: needs key 'name'; has people"), ("1: 2", "key '1' is not known"),
        ("a: &a [x]\nb: [*a, *a]", r"a\.yaml .*\*aliases are not read[\s\S]*line 2"),
        ("name: 2020-99-99", r"a\.yaml .*month must be in 1\.\.12[\s\S]*line 1, column 7"),
        (f"name: 0x{'f' * 6000}", r"a\.yaml .*a value of 6,002 characters"),
        ("name: !!bool x", r"a\.yaml .*no value that can be read"),
        ("[" * 5000, r"a\.yaml cannot be read as YAML: maximum recursion"),
        ("- x\n" * 9999, r"needs lines 'key: value'; got \['x', "),
        (f"name: x\nto: [{'x, ' * 9999}]", r"key 'to' needs a path; got \['x', "),
        ('"\\e[31m": x', r"key '\\x1b\[31m' is not known"),
    ])  # fmt: skip
    def test_another_file_is_refused(self, read, tmp_path, text, message):
        with pytest.raises(WrongError, match=message) as got:
            read(text)
        assert len(str(got.value)) < 1500
        with pytest.raises(WrongError, match=rf"recipe {tmp_path}/no\.yaml does not exist"):
            read_model(Recipe, tmp_path / "no.yaml", "recipe", WrongError)

    @pytest.mark.parametrize(("text", "message"), [
        ("name: 3", r"key 'name' needs a text \(in quotes .*\); got 3"),
        ("name: ' '", "key 'name' needs a text that is not blank; got ' '"),
        ("kind: pie", "key 'kind' needs soup or cake; got 'pie'"),
        ("people: 0", "key 'people' needs a number of 1 or more; got 0"),
        ("people: true", "key 'people' needs a whole number; got True"),
        ("people: 3", "key 'people' needs an even number; got 'odd'"),
        ("eggs: 4", r"key 'eggs': 4 is no prime\."),
        ("tags: soup", "key 'tags' needs a list .*; got 'soup'"),
        ("tags: [a, b, a]", "key 'tags' needs each entry once; got 'a'"),
        ("cook: Boob", r"key 'cook' needs a known name \(nearest known: Bob\); got 'Boob'"),
        ("steps: [1]", "key 'steps', entry 1 needs lines 'key: value'; got 1"),
        ("steps: [{minute: 1}]", "key 'steps', entry 1: key 'minute' is not known; .*minutes"),
        ("steps: [{}]", "key 'steps', entry 1 needs key 'minutes'; has none"),
        ("times: {a: x}", "key 'times', key 'a' needs a whole number; got 'x'"),
        ("to: 3", "key 'to' needs a path; got 3"),
        ("photo: no.png", r"key 'photo' needs a file that exists; got '/.*/no\.png'"),
        ("album: a.yaml", r"key 'album' needs a folder that exists"),
    ])  # fmt: skip
    def test_a_wrong_value_is_refused_by_file_and_key(self, read, text, message):
        with pytest.raises(WrongError, match=rf"a\.yaml: {message}"):
            read(text if "name" in text else f"name: x\n{text}")
