import doctest
import importlib
import pkgutil

import pytest

PACKAGES = {
    "vertibayes_mpc": 50,
    "vertibayes_protocols": 15,
    "vertibayes": 25,
}  # and the least number of examples


def modules_of(package):
    path = importlib.import_module(package).__path__
    names = (module.name for module in pkgutil.walk_packages(path, f"{package}."))
    return [package, *(name for name in names if not name.endswith("__main__"))]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_example_in_a_docstring_is_true(package):
    results = [doctest.testmod(importlib.import_module(name)) for name in modules_of(package)]
    assert not sum(result.failed for result in results)
    assert sum(result.attempted for result in results) >= PACKAGES[package]
