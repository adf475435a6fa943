"""Libraries that are installed on request are imported where they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(module: str, extra: str) -> Any:
    """Import a module of an extra, or raise an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise ImportError(f"{name} is not installed: pip install 'vertibayes[{extra}]'") from None
