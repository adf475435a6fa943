"""Programs of several parties in one process, with messages that are changed on their way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vertibayes_mpc.scheduler import ByHand, Scheduler


class Changing(ByHand):
    """Changes messages on their way: `change(sent)` returns the message that is delivered."""

    def __init__(self, change):
        super().__init__()
        self.change, self.changed = change, 0

    def pack(self, sent):
        message = self.change(sent)
        self.changed += message is not sent.message
        return super().pack(sent._replace(message=message))


def run_changing(programs, change):
    """Run all programs; return the outputs by party. At least one message must be changed."""
    carrier = Changing(change)
    scheduler = Scheduler(carrier)
    try:
        for party, program in programs.items():
            scheduler.start(party, program)
        return {party: scheduler.finish(party) for party in programs}
    finally:
        assert carrier.changed


def changing(kind, change, sender=None, receiver=None):
    """Change the messages of a kind, between some parties: `change(message)` is delivered."""

    def changed(sent):
        is_changed = (
            type(sent.message) is kind
            and sender in (None, sent.sender)
            and receiver in (None, sent.receiver)
        )
        return change(sent.message) if is_changed else sent.message

    return changed


def longer(message):
    return replace(message, values=np.append(message.values, message.values[..., :1]))


def shorter(message):
    return replace(message, values=message.values.ravel()[:-1])


def of_another_type(message):
    return replace(message, values=message.values.astype(np.int64))


def of_another_query(message):
    return replace(message, label=bytes(32))
