"""Mistakes that are planted into the product, to see that schedules find them.

Each is a context manager; within its block, the product has the mistake.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256

import pytest

from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.rounds import send
from vertibayes_protocols import engine, parties
from vertibayes_protocols.queries import Release
from vertibayes_protocols.queries.opening import commit
from vertibayes_protocols.queries.releases import release
from vertibayes_protocols.record_checks import remember_records
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage import whole_file


@contextmanager
def note_after_the_first_byte():
    """A site notes and charges what it gives when it has given it."""

    def answer(role, considered):
        if not isinstance(role, SiteRole):
            yield from engine.answer(role, considered)
            return
        if considered.effects.counts is not None:
            remember_records(role, considered.effects.counts)
        yield from considered.query.run_site(role, considered.plan, lambda: None)
        given = engine._Given(role, considered)
        if not considered.query.is_paid(role):
            given.give()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parties, "run_query", answer)
        yield


@contextmanager
def charged_twice_on_resume():
    """A release that is given again is charged again."""

    def give_again(site, give):
        record = release.record_of(site)
        give()
        yield from send({site.analyst: release.KeptShare(record.share, record.label)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "is_paid", lambda _self, _site: False)
        patch.setattr(release, "give_again", give_again)
        yield


@contextmanager
def mask_kept_over_a_restart():
    """Masks come from static keys and kept ids, without a fresh key of the session."""

    class Kept(SystemRandomness):
        def __init__(self, role):
            self.role, self.columns = role, 0

        def bytes(self, count):
            if count != commit.ID_BYTES:
                return super().bytes(count)
            self.columns += 1
            place = self.columns % len(self.role.data.variables)
            return sha256(f"{self.role.party} {place}".encode()).digest()[:count]

    def exchange(site, *rest):
        site.randomness = Kept(site)
        return (yield from exchange_joinings(site, *rest))

    exchange_joinings = commit._exchange_joinings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "_exchange_joinings", exchange)
        patch.setattr(
            commit, "session_stream",
            lambda own, peer, purpose, *_: own.static.agree(peer.static, purpose),
        )  # fmt: skip
        yield


@contextmanager
def release_lost_to_the_ledger():
    """A release that a crash kept from the ledger is given again, and not noted: up to 0.2.0."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._Given, "note_charged", lambda _self: None)
        yield


@contextmanager
def name_before_content():
    """A file gets its name before its content is on disk: after a loss of power it is torn."""

    def write_whole(path, content, mode=0o600, *, durable=True):
        with whole_file.replacing(path) as part:
            descriptor = whole_file.open_own(part, whole_file.os.O_TRUNC)
            whole_file.os.pwrite(descriptor, content, 0)
            whole_file.os.close(descriptor)
        whole_file.sync(path.parent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_file, "write_whole", write_whole)
        yield


PLANTED = {
    planted.__name__: planted
    for planted in (
        note_after_the_first_byte,
        charged_twice_on_resume,
        mask_kept_over_a_restart,
        release_lost_to_the_ledger,
        name_before_content,
    )
}
