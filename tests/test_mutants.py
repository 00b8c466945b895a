"""Mutations of a source text, and how `mutants.py` judges them."""

import ast
import subprocess
import sys
from pathlib import Path

from mutations import mutations

SCRIPT = Path(__file__).with_name("mutants.py")
SOURCE = '''"""A docstring, 1."""

Kind = Literal["a", "b"]
__version__ = "1"


def f(x: "int" = 4, *, name: str = typer.Option("d", min=1)) -> "int":
    y: "list" = [é, 0.5 <= x] if x else []
    if a is not b and not y:
        raise ValueError("short", f"{x + 1}", "a long text")
    log.info("once", 2)
    save(x, (a + b) not in (c), mode="w", encoding="utf-8")
    return (
        x * True
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
0.5 -> 1.5
<= -> <
a is not b and not y -> not (a is not b and not y)
and -> or
is not -> is
not y -> y
save(x, (a + b) not in (c), mode="w", encoding="utf-8") -> pass
not in -> in
+ -> -
mode="w" -> nothing
"w" -> 'wx'
x * True -> None
* -> /
True -> False
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
    assert near(1, 2) and not near(1, 4) and not near(4, 1)
"""


def test_mutations_are_of_what_runs_and_each_changes_its_own_bytes_only():
    found = mutations(SOURCE)
    assert sorted(one.shown for one in found) == sorted(SHOWN.strip().splitlines())
    for one in found:
        mutated = one.applied(SOURCE)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(SOURCE))
        assert mutated == SOURCE[: one.start] + one.text.encode() + SOURCE[one.end :]
        assert SOURCE.count(b"\n", 0, one.start) == one.line - 1


def test_a_mutation_is_caught_where_a_test_looks_and_survives_elsewhere(tmp_path):
    for path, text in {
        "components/made_up/__init__.py": "",
        "components/made_up/runs/__init__.py": "",  # "runs" in the root is not copied
        "components/made_up/runs/distance.py": CODE,
        "tests/made_up/runs/test_distance.py": TEST,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    command = [sys.executable, SCRIPT, "--root", tmp_path, "--number", "4", "--seed", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    made, (total, _, *survivors) = (done.stdout.splitlines()[at] for at in (slice(4), slice(4, 9)))
    caught = [line for line in made if "caught" in line]
    assert [":3 " in line for line in made] == [line in caught for line in made] and len(caught) < 4
    assert total.startswith(f"caught {len(caught)} of 4, 0 by the time limit; 0 not counted")
    assert len(survivors) == 4 - len(caught) and all(":7 " in line for line in survivors)
    assert (tmp_path / "components/made_up/runs/distance.py").read_text() == CODE
