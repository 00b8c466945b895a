"""What is changed in the product to see whether a test notices, and what is said of it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from mutations import mutations

SCRIPT = Path(__file__).with_name("mutants.py")
SOURCE = '''"""A docstring, 1."""

from typing import TYPE_CHECKING, Literal

import typer

if TYPE_CHECKING:
    LIMIT = 1
Kind = Literal["a", "b"]
__version__ = "1"


@deco(3)
def f(x: "int" = 4, *, name: str = typer.Option("d", min=1)) -> "int":
    """A docstring, 2."""
    y: "list" = [é, 0] if x else []
    if x < 1 and not y:
        raise ValueError("short", f"{x + 1}", "a long text")
    log.info("once", 2)
    save(x, (y), mode="w", encoding="utf-8")
    return (
        x
    )


class Base:
    @abstractmethod
    def g(self):
        return 5


if __name__ == "__main__":
    f(6)
'''.encode()
SHOWN = """
4 -> 5
x -> not (x)
0 -> 1
x < 1 and not y -> not (x < 1 and not y)
and -> or
< -> <=
1 -> 2
not y -> y
save(x, (y), mode="w", encoding="utf-8") -> pass
mode="w" -> nothing
"w" -> 'wx'
x -> None
"""
CODE = """
def near(a, b):
    return abs(a - b) < 3


def far(a, b):
    return a - b > 7
"""
TEST = """
from made_up.runs.distance import near


def test_near():
    assert near(1, 2)
    assert not near(1, 4)
    assert not near(4, 1)
"""


def test_mutations_are_of_what_runs_and_each_changes_its_own_bytes_only():
    found = mutations(SOURCE)
    assert [one.shown for one in found] == SHOWN.strip().splitlines()
    for one in found:
        mutated = one.applied(SOURCE)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(SOURCE))
        assert mutated == SOURCE[: one.start] + one.text.encode() + SOURCE[one.end :]
        assert SOURCE.count(b"\n", 0, one.start) == one.line - 1


@pytest.mark.parametrize(("before", "after"), [
    ("a - b * c", ["a + b * c", "a - b / c"]), ("a is not b", ["a is b"]),
    ("(a + b) not in (c)", ["a + b in c", "a - b not in c"]),
    ("0.5 <= a < True",
     ["1.5 <= a < True", "0.5 < a < True", "0.5 <= a <= True", "0.5 <= a < False"]),
    ("'é' + 'b c'", ["'é' - 'b c'", "'éx' + 'b c'"]),
])  # fmt: skip
def test_what_an_expression_becomes(before, after):
    source = before.encode()
    assert {ast.unparse(ast.parse(one.applied(source))) for one in mutations(source)} == {*after}


@pytest.fixture
def project(tmp_path):
    """A project of one module that has two functions, and tests of the first.

    Its room is called runs, as one of the product and the folder of runs, which is not copied.
    """
    for path, text in {
        "components/made_up/__init__.py": "", "components/made_up/runs/__init__.py": "",
        "components/made_up/runs/distance.py": CODE, "tests/made_up/runs/test_distance.py": TEST,
    }.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def mutants(project, *arguments):
    command = [sys.executable, SCRIPT, "--root", project, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_function_keeps_its_mutations_when_another_changes(project):
    drawn = mutants(project, "--list", "--number", "99")
    assert drawn == mutants(project, "--list", "--number", "99")
    assert drawn != mutants(project, "--list", "--number", "99", "--seed", "1")
    module = project / "components/made_up/runs/distance.py"
    module.write_text(CODE.replace("a - b > 7", "abs(a - b) > 7 + 0"))
    again = mutants(project, "--list", "--number", "99")
    assert [line for line in again if ":3 " in line] == [line for line in drawn if ":3 " in line]


def test_a_mutation_is_caught_where_a_test_looks_and_survives_elsewhere(project):
    lines = mutants(project, "--number", "2", "--seed", "3")  # one of each function
    survived, caught = "distance.py:7  > -> >=", "distance.py:3  3 -> 4"
    assert lines[0].startswith("[  1/2] survived") and lines[0].endswith(survived)
    assert lines[1].startswith("[  2/2] caught") and lines[1].endswith(caught)
    assert lines[2].startswith("caught 1 of 2, 0 by the time limit; 0 not counted")
    assert lines[3] == "survivors:"
    assert lines[4].endswith(survived)
    assert len(lines) == 5
    assert (project / "components/made_up/runs/distance.py").read_text() == CODE


def test_a_package_is_tested_where_its_modules_are(project):
    (project / "components/made_up/runs/__init__.py").write_text("assert 1 == 1")
    lines = mutants(project, "--number", "1", "--only", "runs/__init__")
    assert lines[0].startswith("[  1/1] caught")
