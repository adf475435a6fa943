"""Who follows "How to add a query" in docs/design.md has a query that works and is tested."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from vertibayes_protocols.effects import Effects

ROOT = Path(__file__).parents[1]
QUERIES = "protocols/vertibayes_protocols/queries"


def blocks():
    """Return the blocks of code of the section: the module, its import, its tests."""
    page = (ROOT / "docs" / "design.md").read_text()
    section = page.partition("\n## How to add a query\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


pytestmark = pytest.mark.laws  # the steps are the same on every Python


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the project in which the steps have been followed."""
    module, imported, tests = blocks()
    folder = tmp_path_factory.mktemp("contributor")
    left_out = shutil.ignore_patterns("__pycache__", "test_*.py")
    for name in ("protocols", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for name in ("vertibayes", "mpc", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "tests" / "test_vectors.py", folder / "tests")
    queries = folder / QUERIES
    (queries / "enough.py").write_text(module)
    (folder / "tests" / "protocols" / "test_enough.py").write_text(tests)
    register(queries / "__init__.py", imported)
    return folder


def register(path, imported):
    """Change `__init__.py` as the first step says; the import keeps the order of names."""
    following = "from vertibayes_protocols.queries.opening.begin"
    changes = {
        following: imported + following,
        "    Begin, Align, ": "    Enough, Begin, Align, ",
        '    "Meet",\n': '    "Enough",\n    "Meet",\n',
    }
    text = path.read_text()
    for before, after in changes.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    path.write_text(text)


def run(folder, *arguments):
    command = [sys.executable, "-m", *arguments]
    paths = os.pathsep.join(str(folder / top) for top in ("", "mpc", "protocols"))
    environment = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


def test_the_steps_make_a_query_that_passes_its_tests(copy):
    ran = run(copy, "pytest", "tests/protocols/test_enough.py")
    assert ran.returncode == 0 and "3 passed" in ran.stdout, ran.stdout


def test_the_vectors_need_the_second_step_and_record_two_kinds_after_it(copy):
    test = "tests/test_vectors.py::test_the_bytes_are_those_of_the_recorded_version[wire]"
    before = run(copy, "pytest", test)
    assert before.returncode == 1 and "does not record all messages" in before.stdout
    made = run(copy, "tests.vectors.make")
    assert made.returncode == 0, made.stderr
    assert run(copy, "pytest", test).returncode == 0
    added = (copy / "tests" / "vectors" / "wire.json").read_text()
    assert '"enough"' in added and '"held records"' in added


def test_the_linter_has_nothing_to_say(copy):
    files = [f"{QUERIES}/enough.py", f"{QUERIES}/__init__.py"]
    for command in (["check"], ["format", "--check"]):
        ran = run(copy, "ruff", *command, *files, "tests/protocols/test_enough.py")
        assert ran.returncode == 0, ran.stdout


# ---- a kind that forgets what it does ------------------------------------------------------------


def test_a_query_without_effects_cannot_be_made(copy):
    (copy / "forgetful.py").write_text(blocks()[0].replace("def effects", "def forgotten"))
    for module, is_made in (("vertibayes_protocols.queries.enough", True), ("forgetful", False)):
        (copy / "make.py").write_text(f"from {module} import Enough\nEnough(('a',), 10)\n")
        ran = run(copy, "make")
        assert (ran.returncode == 0) == is_made, ran.stderr
        assert is_made == (re.search("abstract class Enough .*effects", ran.stderr) is None)


def test_the_type_checker_reports_each_effect_that_a_query_forgets(tmp_path):
    names = [item.name for item in fields(Effects)]
    calls = [
        f"    Effects({', '.join(f'{name}=of.{name}' for name in names if name != forgotten)})\n"
        for forgotten in ("", *names)
    ]
    text = "from vertibayes_protocols.effects import Effects\ndef forget(of: Effects) -> None:\n"
    (tmp_path / "forget.py").write_text(text + "".join(calls))
    ran = run(ROOT, "mypy", str(tmp_path / "forget.py"))  # with the cache of `make lint`
    found = re.findall(r':(\d+): error: Missing named argument "(\w+)"', ran.stdout)
    assert found == [(str(line), name) for line, name in enumerate(names, 4)], ran.stdout
    assert ran.stdout.count("error:") == len(names)
