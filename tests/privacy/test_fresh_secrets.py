"""A thief of static keys, after a study, against masked columns and shares that were kept.

The thief has the private static keys of a party, or of all, everything that the sites know of the
study, all first messages and all masked columns as a site keeps them, or a site's shares as the
analyst receives them. Under keys that come from static keys alone it reads them: the control.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.protocols.small import (
    committed,
    count,
    data_of,
    packets,
    plain,
    sealed,
    seeded,
    study_of,
)
from tests.randomness import SeededRandomness
from tests.worlds import all_of
from vertibayes_mpc.commitments.columns import column_mask
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_mpc.masked_tables import site as counting
from vertibayes_mpc.randomness import KeyPair, StreamKey
from vertibayes_mpc.sharing import Share, zero_share
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.opening import commit
from vertibayes_protocols.queries.opening.commit import MASKS, ZEROS, Joining

DATA = data_of(a="x", b="y", c="z")
PARTIES = (*DATA, DEALER)


def static_keys():
    """Return the parties' static keys: the first that a seeded federation draws."""
    source = SeededRandomness()
    return {party: KeyPair.generate(source) for party in PARTIES}


KEYS = static_keys()


@dataclass
class Kept:
    """What was kept of a study."""

    site: object
    federation: object
    shares: dict = field(default_factory=dict)
    joinings: dict = field(default_factory=dict)
    labels: dict = field(default_factory=dict)


def static_ways(monkeypatch):
    """Derive masks and zero shares from static keys alone, as 0.1.0 did."""

    def session_keys(role, joined, fresh, joinings, purpose):
        del joined, fresh
        return {p: role.keys.agree(role.public_keys[p], purpose) for p in joinings}

    monkeypatch.setattr(commit, "_session_keys", session_keys)


def kept_study(monkeypatch):
    """Run a study with a table of each column, and return what was kept of it."""
    labels = {}

    def noted(party, peers, ring, label, cells):
        labels[party] = tuple(peers), ring, label, cells
        return zero_share(party, peers, ring, label, cells)

    monkeypatch.setattr(counting, "zero_share", noted)
    with packets(monkeypatch) as seen:
        federation, study = committed(DATA)
        tables = count(federation, study, "x", "y", "z")
    assert all(np.array_equal(t, plain(DATA, n)) for t, n in zip(tables, "xyz", strict=True))
    sent = [s for s, _ in seen]
    return Kept(
        federation.roles["c"],
        federation,
        {
            s.sender: all_of(labels[s.sender][1], s.message.values)
            for s in sent
            if isinstance(s.message, Share)
        },
        {s.sender: s.message for s in sent if isinstance(s.message, Joining)},
        labels,
    )


def columns_read(kept, key, owner="a", name="x"):
    """Return the codes of a column that the site c has kept, with a key of masks."""
    joined = kept.site.joined
    place = joined.study.place(name)
    form = joined.commitments.form("codes", place)
    blocks = [
        form.ring.reduce(
            kept.site.holder.masked["codes", place, block]
            - column_mask(joined.commitments, key, form, place, block)
        )[0]
        for block in range(3)
    ]
    assert owner in joined.study.holders[name]
    return np.concatenate(blocks)


@pytest.mark.parametrize("stolen", ["a", DEALER])
@pytest.mark.parametrize("fresh", [True, False])
def test_masked_columns_under_a_stolen_static_key(monkeypatch, stolen, fresh):
    if not fresh:
        static_ways(monkeypatch)
    kept = kept_study(monkeypatch)
    other = {"a": DEALER, DEALER: "a"}[stolen]
    key = KEYS[stolen].agree(KEYS[other].public, MASKS)
    assert np.array_equal(columns_read(kept, key), DATA["a"].codes["x"]) != fresh


@pytest.mark.parametrize("fresh", [True, False])
def test_shares_under_the_stolen_static_key_of_a_site(monkeypatch, fresh):
    """The tables are known to the analyst, and which site's share has which counts is not."""
    if not fresh:
        static_ways(monkeypatch)
    kept = kept_study(monkeypatch)
    peers, ring, label, cells = kept.labels["a"]
    keys = {peer: KEYS["a"].agree(KEYS[peer].public, ZEROS) for peer in peers}
    read = ring.reduce(kept.shares["a"] - zero_share("a", keys, ring, label, cells))
    assert np.array_equal(read, [*plain(DATA, "x"), *[0] * 6]) != fresh and len(peers) == 2


def test_a_thief_of_all_static_keys_reads_with_a_key_of_the_session_alone(monkeypatch):
    """The control of this test: the key that the site had is the one that reads."""
    kept = kept_study(monkeypatch)
    assert np.array_equal(
        columns_read(kept, kept.federation.roles["a"].holder.dealer_key), DATA["a"].codes["x"]
    )
    for purpose in (MASKS, *(f"{MASKS}: {part}" for part in ("es", "ss"))):
        for secret, public in (
            (KEYS["a"], KEYS[DEALER].public),
            (KEYS["a"], kept.joinings[DEALER].key),
            (KEYS[DEALER], kept.joinings["a"].key),
        ):
            key = secret.agree(public, purpose)
            assert not np.array_equal(columns_read(kept, key), DATA["a"].codes["x"])


def test_two_sessions_have_no_key_in_common(monkeypatch):
    """Also of one study, whose ids and seeds are the same: dealer and sites draw keys again."""
    keys = set()
    for _ in range(2):
        federation, _ = committed(DATA)
        holders = [federation.roles[site].holder for site in DATA]
        keys |= {h.dealer_key.secret for h in holders}
        keys |= {key.secret for h in holders for key in h.peer_keys.values()}
    assert len(keys) == 6, "a seeded federation repeats itself: the control"
    federation, _ = committed(DATA)
    role = federation.roles["a"]
    role.randomness = SeededRandomness(b"another session")
    federation.session.ask(Commit.of(study_of(DATA)))
    keys |= {role.holder.dealer_key.secret, *(k.secret for k in role.holder.peer_keys.values())}
    assert len(keys) == 9


# ---- what is forgotten ---------------------------------------------------------------------------


@pytest.fixture
def few_objects():
    """Have the collector look at the objects of the test alone."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def alive(kind, secrets):
    """Return how many objects of a kind hold one of these secrets."""
    gc.collect()
    found = [item for item in gc.get_objects() if type(item) is kind]
    return sum((item.public if kind is KeyPair else item.secret) in secrets for item in found)


def test_ephemeral_keys_are_forgotten_before_the_first_column_leaves(monkeypatch, few_objects):
    ephemeral, numbers = set(), {}

    def watch(sent, packet):
        if isinstance(sent.message, Joining):
            ephemeral.add(sent.message.key)
        if isinstance(sent.message, Joining | Columns):
            numbers.setdefault(type(sent.message), []).append(alive(KeyPair, ephemeral))
        return packet

    with packets(monkeypatch, watch):
        committed(DATA)
    assert len(ephemeral) == 4
    assert numbers[Joining][-1] == 4, "all are there while they are exchanged: the control"
    assert set(numbers[Columns][-6:]) == {0}


def test_session_keys_are_forgotten_when_the_session_is_left(few_objects):
    federation, _ = committed(DATA)
    holders = [federation.roles[site].holder for site in DATA]
    secrets = {h.dealer_key.secret for h in holders}
    secrets |= {key.secret for h in holders for key in h.peer_keys.values()}
    del holders
    assert alive(StreamKey, secrets) == 3 * 2 + 3 * 2, "the sites' and the dealer's"
    federation.session.close()
    assert alive(StreamKey, secrets) == 0


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("liar", ["b", DEALER])
@pytest.mark.parametrize(
    ("key", "reason"),
    [(bytes(31), "a wrong number or length"), (bytes(32), "its ephemeral key is not valid")],
)
def test_an_ephemeral_key_that_is_not_valid_names_its_sender(monkeypatch, liar, key, reason):
    def change(sent, packet):
        if sent.sender != liar or not isinstance(sent.message, Joining):
            return packet
        message = sent.message
        return sealed(packet, Joining(message.ids, message.seed, message.order, key))

    with packets(monkeypatch, change):
        federation = seeded(DATA)
    with pytest.raises(MalformedMessageError, match=reason) as caught:
        federation.session.ask(Commit.of(study_of(DATA)))
    assert caught.value.party == liar
