"""A party as in `tests.e2e.party`, which also says how many bytes it has sent in a session."""

from __future__ import annotations

import sys

from tests.e2e.party import main, say
from vertibayes_protocols.transports.channel import Channel


def tell_bytes():
    """Say at the end of each session what was sent in it."""
    leave = Channel.leave

    def watched(channel, error=None):
        leave(channel, error)
        say(f"sent {channel.connection.traffic.bytes}")

    Channel.leave = watched


if __name__ == "__main__":
    tell_bytes()
    main(*sys.argv[1:])
