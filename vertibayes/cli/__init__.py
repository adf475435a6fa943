"""The command line: `app` and `deployment` have the commands, the others what they run."""

from vertibayes.cli.app import main

__all__ = ["main"]
