"""No label is used twice by two sessions whose messages alternate at the same sites.

The values are noted as in `test_labels_over_restarts`, with the session that sends them.
"""

from __future__ import annotations

import hashlib

from tests.privacy.test_labels_over_restarts import Notes
from tests.protocols.test_sessions_side_by_side import STUDY, learn_by_turns, start
from tests.randomness import SeededRandomness
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.labelled import Labelled
from vertibayes_protocols.roles import SharedState, SiteRole
from vertibayes_protocols.transports.connection import Connection


class SessionNotes(Notes):
    """What sites and dealer sent under which stream, and in which session."""

    def _watch_messages(self, monkeypatch):
        send, places = Connection.send, {}

        def watched(connection, outbox):
            for receiver, message in outbox.items():
                if isinstance(message, Labelled):
                    link = connection, receiver, type(message), message.label
                    place = places[link] = places.get(link, -1) + 1
                    once = connection.session, hashlib.sha256(message.values.tobytes()).digest()
                    label = connection.party, *link[1:], place
                    if self.values.setdefault(label, once) != once:
                        self.twice.append(label)
            send(connection, outbox)

        monkeypatch.setattr(Connection, "send", watched)


def test_two_sessions_whose_messages_alternate_use_no_label_twice(monkeypatch):
    notes = SessionNotes(monkeypatch)
    with start() as parties:
        learn_by_turns(parties)
    assert notes.twice == [] and len(notes.values) > 50
    assert len(notes.commitments) == 2, "each session commits under a label of its own"


def test_two_sessions_of_one_study_with_the_same_ids_are_noted(monkeypatch):
    """What the notes would show: parties that neither refuse the second nor draw new ids."""

    def as_once(site, analyst, key):
        session = for_session(site, analyst, key)
        session.randomness = SeededRandomness(site.party.encode())
        return session

    notes, for_session = SessionNotes(monkeypatch), SiteRole.for_session
    monkeypatch.setattr(SiteRole, "for_session", as_once)
    monkeypatch.setattr(SharedState, "claim", lambda *_: None)
    with start() as parties:
        learn_by_turns(parties, study=STUDY)
    assert any(Columns in label for label in notes.twice)
