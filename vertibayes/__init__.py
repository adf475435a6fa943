"""Bayesian networks from data whose columns lie in different organizations.

`__init__.pyi` lists the public names, for type checkers and for this module.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from vertibayes_protocols import RELEASE

__version__ = RELEASE

_HOMES = {
    imported.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module
    for imported in node.names
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the command line starts without numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names, which `__getattr__` imports."""
    return [*__all__, "__version__"]
