"""Change the product in many places, one at a time, and say which changes no test notices.

python tests/mutants.py --number 100 --seed 0 --jobs 2

Each mutation is made in a copy of the project, and the tests of its module run there: the test
file of its name, then those that import it; none that starts FLARE processes.
"""

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from support.mutations import mutations
from support.product import SOURCES, imports, product

FLARE = ("tests/simulator/", "tests/poc/")
PYTEST = (
    *("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"),
    *("--hypothesis-seed=0", "-m", "not simulator and not poc"),
)
PASSED = (0, 5)
"""Exit codes of pytest: all passed, and there was none."""

SURVIVED, CAUGHT, TIMEOUT = "survived", "caught", "caught by the time limit"
NOT_COUNTED = "not counted, as its tests fail without it or take too long:"


def draw(root, number, seed, only):
    """Paths and mutations: one of each module, in a random order, then a second one, and so on.

    The order hangs on the seed, the names of modules and functions, and what each function has to
    mutate: a function that stays as it is keeps its own mutations.
    """

    def rank(*parts):
        return hashlib.sha256("|".join(map(str, (seed, *parts))).encode()).hexdigest()

    drawn = []
    for path, module in product(root).items():
        if only in path.as_posix():
            found = mutations((root / path).read_bytes())
            found.sort(key=lambda one, module=module: rank(module, one.key))
            drawn += [(turn, rank(module), path, one) for turn, one in enumerate(found)]
    return [entry[2:] for entry in sorted(drawn, key=lambda entry: entry[:2])[:number]]


def tests_of(root):
    """File of the product -> test files about it: that of its name, then those that import it.

    For a file without any: the test files of the modules that import it; of a package, its own.
    """
    files = product(root)
    modules = set(files.values())
    tests = (file.relative_to(root) for file in sorted((root / "tests").rglob("test_*.py")))
    tests = [test for test in tests if not test.as_posix().startswith(FLARE)]
    used = {test: imports(root / test, modules) for test in tests}
    about = {}
    for path, module in files.items():
        own = Path("tests", *path.parts[1:-1], f"test_{path.name}")
        found = [test for test in used if module in used[test] and test != own]
        about[path] = [own] * (own in used) + found
    package = {path: files.get(path.parent / "__init__.py") for path in files}
    users = {path: imports(root / path, modules) | {package[path]} for path in files}
    for path in [path for path in files if not about[path]]:
        found = {test for user in files if files[path] in users[user] for test in about[user]}
        about[path] = sorted(found)
    return about


class Copy:
    """A copy of the project in a folder, for one mutation at a time.

    Args:
        root: The project.
        folder: Where the copy is put, with all that its tests leave.
        limit: Seconds that its tests may take.
        codes: Test files -> exit code without a mutation; what is found out is put there.
    """

    def __init__(self, root, folder, limit, codes):
        self.root, self.log = folder / "project", folder / "log"
        self.limit, self.codes = limit, codes
        left = shutil.ignore_patterns(".?*", "__pycache__")
        made = shutil.ignore_patterns(".?*", "__pycache__", "runs", "build", "dist")
        shutil.copytree(
            root,
            self.root,  # the product has a room called runs
            ignore=lambda at, names: (made if Path(at) == root else left)(at, names),
        )
        (folder / "tmp").mkdir(parents=True)
        self.environment = {
            "HYPOTHESIS_PROFILE": "dev", **os.environ,
            "PYTHONPATH": os.pathsep.join(str(self.root / source) for source in SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",  # it may outlive a mutation that is undone in a second
            "SURGAGG_CACHE": str(folder / "cache"), "TMPDIR": str(folder / "tmp"),
        }  # fmt: skip
        for package in {module.partition(".")[0] for module in product(root).values()}:
            self._python("-c", f"import {package}; print({package}.__file__)")
            if not self.log.read_text().startswith(str(self.root)):
                raise SystemExit(f"{package} is not imported from the copy: {self.log.read_text()}")

    def _python(self, *arguments):
        """The exit code, None for a process that was stopped at the time limit."""
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, *map(str, arguments)], cwd=self.root, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,  # so that what its tests start can be stopped with it
            )  # fmt: skip
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
            return NOT_COUNTED
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
    return f"{path.as_posix()}:{mutation.line}  {mutation.shown}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=100, help="of mutations (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (%(default)s)")
    parser.add_argument("--only", default="", metavar="PART", help="files with this in their path")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time (%(default)s)")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each (%(default)s)")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the project")
    parser.add_argument("--list", action="store_true", help="say what is drawn, run nothing")
    options = parser.parse_args()
    root, began = options.root.resolve(), time.monotonic()
    drawn = draw(root, options.number, options.seed, options.only)
    if options.list:
        print("\n".join(described(*one) for one in drawn))
        return
    survivors, came = measure(root, drawn, options.jobs, options.limit)
    caught = came[CAUGHT] + came[TIMEOUT]
    print(
        f"caught {caught} of {caught + came[SURVIVED]}, {came[TIMEOUT]} by the time limit; "
        f"{came[NOT_COUNTED]} not counted; {time.monotonic() - began:.0f} s"
    )
    print("\n".join(["survivors:", *survivors] if survivors else ["no survivors"]))


if __name__ == "__main__":
    main()
