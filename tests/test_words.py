"""`make check` and the commit hook refuse the words that the style refuses."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest

ROOT = Path(__file__).parents[1]
WORDS = ("told", "Said", "anew", "beside", "whoever", "Nobody", "nobody")


@pytest.fixture
def checked(tmp_path):
    """Run the hook in a repository of some files."""
    copy(ROOT / ".pre-commit-config.yaml", tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    def run(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "words", "--all-files"], cwd=tmp_path,
            env={**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}, capture_output=True,
            text=True,
        )  # fmt: skip

    return run


def test_it_passes_plain_words_the_value_of_byoc_and_tests(checked):
    value = 'byoc = "nobody"  # --byoc nobody, `nobody`, besides, retold\n'
    done = checked({"custom/a.py": value, "tests/test_a.py": "told\n"})
    assert done.returncode == 0 and "Passed" in done.stdout, done.stdout


def test_it_names_file_and_line_of_each_refused_word(checked):
    pages = ["README.md", "Makefile", "components/a.py", "custom/a/page.html.j2", "docs/b.toml"]
    done = checked({page: "\n".join(WORDS) for page in pages})
    assert done.returncode == 1
    expected = {f"{page}:{n}:{word}" for page in pages for n, word in enumerate(WORDS, 1)}
    assert expected == {line for line in done.stdout.splitlines() if line.count(":") == 2}


def test_make_check_runs_it():
    check = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    assert "pre-commit run words --all-files" in check
