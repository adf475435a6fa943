"""The command line: ``vertibayes learn``, ``vertibayes demo``."""

from vertibayes.cli.app import main

__all__ = ["main"]
