"""A command that ends when its parent process ends: ``python -m vertibayes.cli.child site FILE``.

The parent holds the other end of the command's standard input. The system closes it when the parent
ends, however it ends.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Thread

from vertibayes.cli import main


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # a buffered reader would not let the interpreter end
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # nobody reads it any more
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    Thread(target=_end_with_parent, daemon=True).start()
    main()
