"""A command that ends with who started it: ``python -m vertibayes.cli.child site FILE``.

Whoever started it holds the other end of its standard input, which the system closes when that
process is gone, however it went.
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
