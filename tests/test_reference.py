"""Every public name is documented, and the site's reference and its navigation have it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
import tomllib

import pytest

import vertibayes
from tests.documents import ROOT, pages, scripts

SITE = ROOT / "docs" / "site"
CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


@pytest.fixture(scope="module")
def reference():
    with scripts(SITE, "reference") as [module]:
        yield module


def public():
    """Return the public names of the packages that users import."""
    packages = map(
        importlib.import_module, ("vertibayes", "vertibayes.sklearn", "vertibayes.pgmpy")
    )
    return {f"{p.__name__}.{name}": getattr(p, name) for p in packages for name in p.__all__}


def parameters_of(thing):
    if getattr(thing, "_is_protocol", False):
        return []
    return [name for name in inspect.signature(thing).parameters if not name.startswith("_")]


def returns(thing):
    return not inspect.isclass(thing) and thing.__annotations__["return"] not in {"None", None}


def raises(thing):
    """Whether the body of a function, or the checks of a new object, raise an error themselves."""
    source = thing if not inspect.isclass(thing) else vars(thing).get("__post_init__")
    if source is None:
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(source)))
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


def sections_missing(thing):
    """Return the sections that a docstring should have and does not have."""
    text = inspect.getdoc(thing) or ""
    needed = {
        "Parameters": bool(parameters_of(thing)),
        "Returns": returns(thing),
        "Raises": raises(thing),
    }
    if inspect.isgeneratorfunction(inspect.unwrap(thing)):
        needed["Yields"] = needed.pop("Returns")
    if "Attributes" in text and inspect.isclass(thing):
        needed["Parameters"] = False
    return [
        name
        for name, applies in needed.items()
        if applies and not re.search(rf"^{name}\n-+$", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("name", public())
def test_a_public_name_has_a_complete_docstring(name):
    thing = public()[name]
    assert not sections_missing(thing), f"{name} has no {sections_missing(thing)}"
    text = inspect.getdoc(thing)
    undescribed = [p for p in parameters_of(thing) if not re.search(rf"\b{p}\b", text)]
    assert not undescribed, f"{name} does not describe {undescribed}"


@pytest.mark.parametrize("name", public())
def test_every_public_method_has_a_docstring(name):
    for method, function in vars(public()[name]).items():
        function = getattr(function, "__func__", getattr(function, "fget", function))
        if inspect.isfunction(function) and not method.startswith("_"):
            assert function.__doc__, f"{name}.{method} has no docstring"


def test_a_missing_section_is_found():
    def twice(number: int) -> int:
        """Return a number twice.

        Parameters
        ----------
        number : int
            Not negative.
        """
        if number < 0:
            raise ValueError(f"number must not be negative, got {number}")
        return 2 * number

    assert sections_missing(twice) == ["Returns", "Raises"]


def test_the_reference_has_each_public_name(reference):
    shown = {
        name
        for text in reference.pages().values()
        for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    }
    homes = {f"vertibayes.{name}": home for name, home in vertibayes._HOMES.items()}
    for name in public():
        place = f"{homes[name]}.{name.split('.')[-1]}" if name in homes else name
        assert place in shown, f"{name} is on no page"
    for package in reference.PRIMITIVES:
        module = importlib.import_module(f"vertibayes_mpc.{package}")
        assert module.__all__ and {f"{module.__name__}.{n}" for n in module.__all__} <= shown
    for module in shown:
        if re.fullmatch(r"vertibayes_\w+(\.[a-z_]+)+", module):
            top, _, last = module.rpartition(".")
            assert hasattr(importlib.import_module(top), last) or importlib.import_module(module)


def test_the_reference_is_read_without_importing_the_project(reference):
    assert reference.homes() == vertibayes._HOMES
    assert set(vertibayes.__all__) == set(vertibayes._HOMES)
    assert reference.exported("vertibayes.choosing") == [
        "Chooser",
        "TableChooser",
        "chooser_of",
        "follow",
    ]
    with pytest.raises(ValueError, match=r"vertibayes\.structure assigns no __all__"):
        reference.exported("vertibayes.structure")


def listed(entry):
    """Yield the pages of the navigation."""
    if isinstance(entry, str):
        yield entry
    for part in entry.values() if isinstance(entry, dict) else entry:
        if part is not entry and not isinstance(entry, str):
            yield from listed(part)


def test_the_navigation_has_each_page_once(reference):
    named = list(listed(CONFIGURATION["nav"]))
    assert len(named) == len(set(named))
    made = {f"docs/reference/{name}" for name in reference.pages()}
    there = {str(page.relative_to(ROOT)) for page in pages()}
    assert set(named) <= there | made, "the navigation has a page that does not exist"
    primitives = {f"docs/reference/mpc_{name}.md" for name in reference.PRIMITIVES}
    assert made - set(named) == primitives, "the overview of the reference leads to these"
    unlisted = {page for page in there - set(named) if page.startswith("docs/")}
    assert not unlisted, f"zensical.toml does not say where in the navigation these are: {unlisted}"


def test_the_site_is_built_strictly_and_without_fonts_of_another_host():
    assert CONFIGURATION["strict"] is True
    assert CONFIGURATION["theme"]["font"] is False
    assert CONFIGURATION["use_directory_urls"] is False


SECTION = re.compile(r"^\s*(Attributes|Parameters|Raises|Returns|Yields)\n\s*-{3,}$", re.MULTILINE)
IMPORTED = re.compile(r"from vertibayes[\w.]* import (\([\w, \n]+\)|[\w, ]+)")


def exported():
    """Return the names that a package exports, or that a page or an example imports."""
    names = set()
    for home in ("vertibayes", "mpc", "protocols"):
        for path in (ROOT / home).rglob("__init__.py"):
            names.update(getattr(importlib.import_module(module_name(path)), "__all__", ()))
    texts = [*pages(), *ROOT.glob("examples/*.py"), *ROOT.glob("integrations/*/**/*.py")]
    for path in texts:
        for found in IMPORTED.findall(path.read_text(encoding="utf-8")):
            names.update(re.findall(r"\w+", found))
    return names


def module_name(path):
    home = (
        ROOT if path.is_relative_to(ROOT / "vertibayes") else ROOT / path.relative_to(ROOT).parts[0]
    )
    return ".".join(path.parent.relative_to(home).parts)


def inner(body, names):
    """Return the definitions that no package exports, with the methods of their classes."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in names:
            yield from (n for n in ast.walk(node) if isinstance(n, type(node) | ast.FunctionDef))


def test_only_what_a_package_exports_has_sections_in_its_docstring():
    bases = {base.__name__ for thing in public().values() for base in getattr(thing, "__mro__", ())}
    names, long = exported() | bases, []
    for home in ("vertibayes", "mpc", "protocols"):
        for path in (ROOT / home).rglob("*.py"):
            for node in inner(ast.parse(path.read_text(encoding="utf-8")).body, names):
                if SECTION.search(ast.get_docstring(node) or ""):
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}")
    assert not long, "\n".join(["a line is enough for what is not exported:", *long])
