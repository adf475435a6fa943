"""The commands of a page of documentation, and what the page says that they print.

A block ```sh has commands, and a block ```text after it has lines that they print. `...` stands for
any text within a line, and alone on a line for any lines. A block without a language is not run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from vertibayes.cli import main


class Block(NamedTuple):
    """Commands of a page, and the lines that the page shows after them."""

    commands: str
    shown: tuple[str, ...]


def blocks(text):
    """Return the blocks of commands of a page, in order."""
    found = re.findall(r"(?ms)^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", text)
    return [Block(commands, tuple(shown.splitlines())) for commands, shown in found]


def first_commands(text):
    """Return the commands with which the reader of a page of a role begins: before its headings."""
    begin = re.split(r"(?m)^## ", text)[0]
    found = "".join(re.findall(r"(?ms)^```\n(.*?)^```$", begin))
    return [command.strip() for command in commands_of(found)]


def commands_of(text):
    """Divide a block into commands: continued lines and here-documents belong together."""
    command, end = "", None
    for line in text.splitlines(keepends=True):
        command += line
        if end is None and (opened := re.search(r"<<'(\w+)'", line)):
            end = opened[1]
        elif line.strip() == end or (end is None and not line.endswith("\\\n")):
            yield command
            command, end = "", None
    assert not command, f"a command without its end: {command}"


def run_here(block, capfd, cwd):
    """Run a block: `vertibayes` in this process, which is fast, and the rest in a shell."""
    assert Path.cwd() == cwd, "commands write into the folder of the test"
    codes = [_run_one(command, cwd) for command in commands_of(block.commands)]
    printed = capfd.readouterr()
    return codes, printed.err + printed.out


def _run_one(command, cwd):
    if not command.startswith("vertibayes "):
        return subprocess.run(["sh", "-e", "-c", command], cwd=cwd, check=False).returncode
    try:
        main(shlex.split(command.replace("\\\n", " "))[1:])
    except SystemExit as stop:
        return stop.code or 0
    finally:
        sys.stdout.flush()
    return 0


def assert_shown(block, printed):
    """Fail unless all lines of the page have been printed, in this order."""
    rest = printed.splitlines()
    for line in block.shown:
        if line == "...":
            continue
        pattern = ".*".join(map(re.escape, line.split("...")))
        place = next((i for i, text in enumerate(rest) if re.fullmatch(pattern, text)), None)
        assert place is not None, f"the page shows {line!r}; after the lines before it:\n" + (
            "\n".join(rest)
        )
        rest = rest[place + 1 :]


def fails(block):
    """Return whether the page shows that the last command of the block is refused."""
    return any(line.startswith("vertibayes: ") for line in block.shown)
