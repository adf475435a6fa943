import doctest
import importlib
import pkgutil

import pytest

PACKAGES = ["mpc"]


def modules_of(package):
    path = importlib.import_module(package).__path__
    return [package, *(module.name for module in pkgutil.walk_packages(path, f"{package}."))]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_example_in_a_docstring_is_true(package):
    results = [doctest.testmod(importlib.import_module(name)) for name in modules_of(package)]
    assert not sum(result.failed for result in results)
    assert sum(result.attempted for result in results) > 50
