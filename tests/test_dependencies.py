"""What the packages import is declared, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

import pytest

from tests.documents import PACKAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# What a distribution is called if not as its module.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
# Functions whose argument is the name of a module that they import.
IMPORTERS = {"import_module", "load", "library", "find_spec"}
LICENCES = {"phe": "paillier"}  # GPL-3.0: never a dependency of everybody


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a module imports when it runs, at its top or later."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            yield from (module for module, _ in loaded(node))
        yield from imported(node)


def loaded(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the module that a call imports by name, and the extra that it names, or ''."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if name in IMPORTERS and texts:
        yield texts[0], texts[1] if len(texts) > 1 else ""


def distribution(module: str) -> str:
    """Return the name by which a module's package is declared."""
    top = module.partition(".")[0]
    return DISTRIBUTIONS.get(top, top.replace("_", "-"))


def used(trees) -> set[str]:
    """Return the distributions of other projects that modules import."""
    modules = {name.partition(".")[0] for tree in trees for name in imported(tree)}
    return {distribution(name) for name in modules - set(sys.stdlib_module_names) - set(PACKAGES)}


def names(requirements) -> set[str]:
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}


@pytest.fixture(scope="module")
def trees():
    return {
        path: ast.parse(path.read_text())
        for name, top in PACKAGES.items()
        for path in top.glob(f"{name}/**/*.py")
    }


def declared() -> set[str]:
    extras = PROJECT["optional-dependencies"].values()
    return names(PROJECT["dependencies"]).union(*map(names, extras))


def test_what_is_imported_is_declared(trees):
    assert used(trees.values()) <= declared()


def test_what_is_declared_is_imported(trees):
    assert declared() <= used(trees.values())


def test_an_extra_has_the_modules_that_its_error_says_to_install_it_for(trees):
    """`load(module, extra)` raises "pip install 'vertibayes[extra]'"."""
    calls = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.Call)]
    pairs = {pair for call in calls for pair in loaded(call) if pair[1]}
    assert {extra for _, extra in pairs} >= {"noise", "paillier"}
    for module, extra in pairs:
        assert distribution(module) in names(PROJECT["optional-dependencies"][extra]), module


def test_analysts_have_the_libraries_of_their_work_and_no_licence_binds_them():
    always = names(PROJECT["dependencies"])
    assert always >= {"networkx", "numpy", "pandas", "pgmpy"}
    for package, extra in LICENCES.items():
        assert package not in always
        assert package in names(PROJECT["optional-dependencies"][extra])


@pytest.mark.parametrize(
    "code",
    [
        "import planted.part",
        "from planted import part",
        "def late():\n    import planted",
        "def late():\n    return import_module('planted.part')",
        "def late():\n    return extras.load('planted', 'extra')",
    ],
)
def test_each_way_of_importing_is_found(code):
    """The control: none of these packages is declared."""
    assert used([ast.parse(code)]) == {"planted"}


def test_imports_for_types_alone_and_of_the_project_itself_do_not_count():
    code = "import os, vertibayes_mpc.ring\nif TYPE_CHECKING:\n    import planted"
    assert used([ast.parse(code)]) == set()
