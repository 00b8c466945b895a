"""Change the product in many places, one at a time, and say which changes no test notices.

python tests/mutants.py --number 100 --seed 0 --jobs 2

Each mutation is made in a copy of the project, and the tests of its module run there: the test
file of its name, then those that import it; none that starts FLARE processes.
"""

import argparse
import ast
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from support.mutations import mutations

SOURCES = ("components", "custom")
FLARE = ("tests/simulator/", "tests/poc/")
PYTEST = (
    *("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"),
    *("--hypothesis-seed=0", "-m", "not simulator and not poc"),
)
PASSED = (0, 5)
"""Exit codes of pytest: all passed, and there was none."""

SURVIVED, CAUGHT, TIMEOUT = "survived", "caught", "caught by the time limit"
FAILING = "not counted, as its tests fail without it:"
TOO_SLOW = "not counted, as its tests take longer than the time limit without it:"


def product(root):
    """Files of the product, as paths from the project's root -> their modules."""
    files = sorted(file for source in SOURCES for file in (root / source).rglob("*.py"))
    paths = [file.relative_to(root) for file in files]
    modules = (".".join(path.with_suffix("").parts[1:]) for path in paths)
    return {path: name.removesuffix(".__init__") for path, name in zip(paths, modules, strict=True)}


def draw(root, number, seed, only):
    """Paths and mutations: as many from each module of a folder, 2 or more from each folder.

    Larger folders get more. Which ones a module gives hangs on the seed, the names of its
    functions and what each has to mutate: a function that stays as it is keeps its own.
    """

    def rank(*parts):
        return hashlib.sha256("|".join(map(str, (seed, *parts))).encode()).hexdigest()

    lines, ranked = Counter(), defaultdict(list)
    for path, module in product(root).items():
        source = (root / path).read_bytes() if only in path.as_posix() else b""
        found = sorted(mutations(source), key=lambda one, module=module: rank(module, one.key))
        if found:
            lines[path.parent] += source.count(b"\n")
            ranked[path.parent] += [
                (turn, rank(module), path, one) for turn, one in enumerate(found)
            ]
    there = {folder: len(found) for folder, found in ranked.items()}
    least = min(2, number // max(1, len(there)))
    share = Counter({folder: min(least, there[folder]) for folder in there})
    while share.total() < min(number, sum(there.values())):
        more = [folder for folder in there if share[folder] < there[folder]]
        share[max(more, key=lambda folder: lines[folder] / (share[folder] + 1))] += 1
    return [
        (path, mutation)
        for folder, found in ranked.items()
        for _, _, path, mutation in sorted(found, key=lambda one: one[:2])[: share[folder]]
    ]


def imports(file, modules):
    """Which of some modules a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            within = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            names |= within or {node.module}
    return names & modules


def tests_of(root):
    """File of the product -> test files about it: that of its name, then those that import it.

    For a file without any: the test files of the modules that import it.
    """
    files = product(root)
    modules = set(files.values())
    tests = (file.relative_to(root) for file in (root / "tests").rglob("test_*.py"))
    used = {
        test: imports(root / test, modules)
        for test in tests
        if not test.as_posix().startswith(FLARE)
    }
    mirror = {path: Path("tests", *path.parts[1:-1], f"test_{path.name}") for path in files}
    about = {
        path: {test for test in used if module in used[test] or test == mirror[path]}
        for path, module in files.items()
    }
    uses = {path: imports(root / path, modules) for path in files}
    for path in [path for path in files if not about[path]]:
        about[path] = set().union(*(about[user] for user in files if files[path] in uses[user]))
    return {
        path: sorted(tests, key=lambda test, path=path: (test != mirror[path], test))
        for path, tests in about.items()
    }


class Copy:
    """A copy of the project, for one mutation at a time.

    Args:
        root: The project.
        folder: Where the copy is put, with all that its tests leave.
        limit: Seconds that its tests may take.
        codes: Test files -> exit code without a mutation; what is found out is put there.
    """

    def __init__(self, root, folder, limit, codes):
        self.root, self.log = folder / "project", folder / "log"
        self.limit, self.codes = limit, codes
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout
        for name in names.split("\0"):
            if (root / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, self.root / name)
        (folder / "tmp").mkdir(parents=True)
        self.environment = {
            "HYPOTHESIS_PROFILE": "dev",
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(self.root / source) for source in SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",  # it may outlive a mutation that is undone in a second
            "SURGAGG_CACHE": str(folder / "cache"),
            "TMPDIR": str(folder / "tmp"),
        }
        for package in {module.partition(".")[0] for module in product(root).values()}:
            self._python("-c", f"import {package}; print({package}.__file__)")
            if not self.log.read_text().startswith(str(self.root)):
                raise SystemExit(f"{package} is not imported from the copy: {self.log.read_text()}")

    def _python(self, *arguments):
        """The exit code, None for a process that was stopped at the time limit."""
        command = [sys.executable, *map(str, arguments)]
        with self.log.open("w") as log:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that what its tests start can be stopped with it
            )
            try:
                return process.wait(self.limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def judge(self, path, mutation, tests):
        """What comes of a mutation.

        Only the file with the test that failed is run without it: the others say nothing.
        """
        if not tests:
            return SURVIVED
        source = (self.root / path).read_bytes()
        (self.root / path).write_bytes(mutation.applied(source))
        code = self._python(*PYTEST, *tests)
        (self.root / path).write_bytes(source)
        if code in PASSED:
            return SURVIVED
        failed = re.search(r"^(?:FAILED|ERROR) (\S+?\.py)", self.log.read_text(), re.MULTILINE)
        again = (failed[1],) if failed else tuple(tests)
        if again not in self.codes:
            self.codes[again] = self._python(*PYTEST, *again)
        if self.codes[again] not in PASSED:
            return TOO_SLOW if self.codes[again] is None else FAILING
        return TIMEOUT if code is None else CAUGHT


def measure(root, drawn, jobs, limit):
    """Judge what was drawn, a line for each; the survivors, and how many came to what."""
    tests, codes, copies = tests_of(root), {}, SimpleQueue()

    def judge(drawn):
        copy, began = copies.get(), time.monotonic()
        try:
            return copy.judge(*drawn, tests[drawn[0]]), time.monotonic() - began
        finally:
            copies.put(copy)

    came, survivors = Counter(), []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for worker in range(jobs):
            copies.put(Copy(root, Path(folder).resolve() / str(worker), limit, codes))
        for one, (what, seconds) in zip(drawn, pool.map(judge, drawn), strict=True):
            came[what] += 1
            line = f"{seconds:.1f} s  {described(*one)}"
            print(f"[{came.total():3}/{len(drawn)}] {what} {line}", flush=True)
            if what == SURVIVED:
                survivors.append(line if tests[one[0]] else f"{line}  (no test imports it)")
    for files in (files for files, code in codes.items() if code not in PASSED):
        print("did not pass without a mutation:", *files)
    return survivors, came


def described(path, mutation):
    """Where a mutation is, and what it does."""
    return f"{path.as_posix()}:{mutation.line}  {mutation.shown}"


def main():
    """Draw, judge and say what survived; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=100, help="of mutations (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (%(default)s)")
    parser.add_argument("--only", default="", metavar="PART", help="files with this in their path")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time (%(default)s)")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each (%(default)s)")
    parser.add_argument("--at-least", type=int, default=0, help="exit with 1 if fewer are caught")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the project")
    parser.add_argument("--list", action="store_true", help="say what is drawn, run nothing")
    options = parser.parse_args()
    root, began = options.root.resolve(), time.monotonic()
    drawn = draw(root, options.number, options.seed, options.only)
    if options.list:
        print("\n".join(described(*one) for one in drawn))
        return 0
    survivors, came = measure(root, drawn, options.jobs, options.limit)
    caught = came[CAUGHT] + came[TIMEOUT]
    print(
        f"caught {caught} of {caught + came[SURVIVED]}, {came[TIMEOUT]} by the time limit; "
        f"{came[FAILING] + came[TOO_SLOW]} not counted; {time.monotonic() - began:.0f} s"
    )
    print("\n".join(["survivors:", *survivors] if survivors else ["no survivors"]))
    return int(caught < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
