from dataclasses import replace

import pytest

from tests.protocols.small import (
    STATES,
    committed,
    data_of,
    memories,
    packets,
    refusal,
    sealed,
    seeded,
    study_of,
)
from tests.randomness import SeededRandomness
from vertibayes_mpc.commitments.commit import Columns
from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.engine import consider
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.queries import Commit
from vertibayes_protocols.queries.opening.commit import Committed, Joining, commitments_of
from vertibayes_protocols.roles import DealerRole
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Variable

DATA = data_of(a="xy", b="z", c="w")
STUDY = study_of(DATA)


WITHOUT_C = {
    part: {name: found for name, found in getattr(STUDY, part).items() if name != "w"}
    for part in ("variables", "holders")
}
OTHER_STATES = {**STUDY.variables, "x": Variable("x", STATES[::-1])}


def test_a_dealer_deals_for_no_more_records_than_it_can_believe():
    """It holds none: a site and an analyst could name billions, to make it expand their places."""
    keys = KeyPair.generate(SeededRandomness())
    dealer = DealerRole("dealer", keys, dict.fromkeys(STUDY.sites, keys.public), most_records=40)
    consider(dealer, Commit.of(STUDY))
    with pytest.raises(QueryRefusedError, match="the study has 41 records; at most 40 are allowed"):
        consider(dealer, Commit.of(replace(STUDY, records=41)))


def test_a_dealer_refuses_a_study_of_another_dealer_and_sites_that_it_has_no_key_of():
    keys = KeyPair.generate(SeededRandomness())
    dealer = DealerRole("dealer", keys, dict.fromkeys(STUDY.sites[1:], keys.public))
    with pytest.raises(QueryRefusedError, match="the query does not ask this party"):
        consider(dealer, Commit.of(replace(STUDY, dealer="zoe")))
    with pytest.raises(QueryRefusedError, match=f"no public key of the sites {STUDY.sites[0]}$"):
        consider(dealer, Commit.of(STUDY))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"records": 39}, "it does not hold 39 records"),
        ({"dealer": "zoe"}, "the dealer of the study, or one of its sites, is not pinned here"),
        ({**WITHOUT_C, "dealer": "c"}, "the dealer of the study, or one of its sites"),
        ({"holders": {**STUDY.holders, "z": ("zoe",)}}, "or one of its sites, is not pinned here"),
        ({"holders": {**STUDY.holders, "z": ("a",)}}, "it shows no variable 'z'"),
        ({"holders": {**STUDY.holders, "x": ("a", "c")}}, "'x' lies at a, c, and the study does"),
        ({"variables": OTHER_STATES}, "it shows no variable 'x' with these states"),
        ({"variables": {**STUDY.variables, "x": Variable("x", STATES, True)}}, "no variable 'x'"),
    ],
)
def test_a_study_that_a_site_cannot_join_is_refused(changes, reason):
    site = seeded(DATA).roles["a"]
    with pytest.raises(QueryRefusedError) as caught:
        consider(site, Commit.of(replace(STUDY, **changes)))
    assert caught.value.site == "a" and reason in caught.value.reason
    assert not site.ledger.facts


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": b""}, "has no id"),
        ({"dealer": "b"}, "the dealer b is also a site"),
        ({"holders": {**STUDY.holders, "z": ()}}, "fewer than two states, no holder, or a"),
        ({"holders": {**STUDY.holders, "z": ("a", "a")}}, "or a holder twice"),
        ({"holders": {**STUDY.holders, "z": ("c", "a")}}, "its holders must be sorted"),
        ({"holders": WITHOUT_C["holders"]}, "must have the holders of its variables"),
        ({"holders": dict(reversed(STUDY.holders.items()))}, "of its variables, in their order"),
        ({"variables": {**STUDY.variables, "z": Variable("z", ("a",))}}, "fewer than two states"),
        ({"variables": {**STUDY.variables, "z": STUDY.variables["x"]}}, "under another name"),
        ({"variables": {}, "holders": {}}, "the study has no variables"),
        ({"block_rows": 0}, "blocks must have 16 to 1048576 rows, a multiple of 16; got 0"),
        ({"block_rows": 17}, "a multiple of 16; got 17"),
        ({"most_indicators": 0}, "between 1 and 255 indicators at most, got 0"),
        ({"most_indicators": 256}, "between 1 and 255 indicators at most, got 256"),
        ({"records": 1 << 70}, "number of records must be"),
    ],
)
def test_a_study_whose_parts_do_not_fit_is_none(changes, reason):
    with pytest.raises(ValueError, match=reason):
        replace(STUDY, **changes)


def test_a_refused_study_can_be_put_right():
    federation = seeded(DATA)
    assert "39" in refusal(federation, Commit.of(replace(STUDY, records=39)))
    assert federation.session.ask(Commit.of(STUDY)).study == STUDY


@pytest.mark.parametrize(
    "lie", [{"ids": ()}, {"ids": (bytes(16),)}, {"ids": (bytes(15),) * 2}, {"seed": bytes(31)}]
)
def test_ids_or_a_seed_of_a_wrong_length_name_their_site(monkeypatch, lie):
    def change(sent, packet):
        lies = sent.sender == "a" and isinstance(sent.message, Joining)
        return sealed(packet, replace(sent.message, **lie)) if lies else packet

    with packets(monkeypatch, change):
        federation = seeded(DATA)
    with pytest.raises(MalformedMessageError, match="wrong number or length") as caught:
        federation.session.ask(Commit.of(STUDY))
    assert caught.value.party == "a"


def test_states_and_ids_are_told_apart_in_a_commitments_name():
    """Both lists are as long as they are: where one ends is in the name."""

    def named(states, ids):
        study = replace(STUDY, variables={"x": Variable("x", states)}, holders={"x": ("a",)})
        return commitments_of(study, {"x": ids}, bytes(32)).operands[0].id

    assert named(("a", "b"), [b"c", b"d"]) != named(("a", "b", "c"), [b"d"])


def masked_bodies(seen):
    return [packet[1] for sent, packet in seen if isinstance(sent.message, Columns)]


def test_a_commitment_asked_again_is_answered_with_the_same_bytes(monkeypatch):
    remembered, bodies = memories("a", "b", "c"), []
    for study in (STUDY, STUDY, replace(STUDY, id=b"another")):
        with packets(monkeypatch) as seen:
            committed(DATA, study, memories=remembered)
        bodies.append(masked_bodies(seen))
    assert len(bodies[0]) == 18 and bodies[0] == bodies[1]
    assert not set(bodies[0]) & set(bodies[2])


def test_changed_data_are_not_committed_again_in_the_same_study():
    remembered = memories("a", "b", "c")
    committed(DATA, memories=remembered)
    codes = {**DATA["a"].codes, "x": DATA["a"].codes["x"][::-1]}
    changed = {**DATA, "a": SiteData(DATA["a"].variables, codes)}
    federation = seeded(changed, memories=remembered)
    assert "'x' has changed" in refusal(federation, Commit.of(STUDY))
    assert federation.session.ask(Commit.of(replace(STUDY, id=b"another")))


@pytest.mark.parametrize(
    ("mark", "error", "parties", "reason"),
    [
        (bytes(32), UnknownFaultyPartyError, ("a", "b", "c"), "b has joined another study than a"),
        (bytes(31), MalformedMessageError, ("b",), "its mark has 31 bytes, not 32"),
    ],
)
def test_sites_that_joined_different_studies_are_named_and_so_is_a_wrong_mark(
    monkeypatch, mark, error, parties, reason
):
    def change(sent, packet):
        lies = sent.sender == "b" and isinstance(sent.message, Committed)
        return sealed(packet, Committed(mark)) if lies else packet

    with packets(monkeypatch, change):
        federation = seeded(DATA)
    with pytest.raises(error, match=reason) as caught:
        federation.session.ask(Commit.of(STUDY))
    assert caught.value.parties == parties


def test_the_mark_is_that_of_the_sites_memories_and_no_part_of_their_seeds():
    remembered, marks = memories("a", "b", "c"), []
    for kept in (remembered, remembered, memories("a", "b", "z")):
        federation, _ = committed(DATA, memories={"abc"[i]: m for i, m in enumerate(kept.values())})
        marks.append(federation.session.role.joined.mark)
        seed = federation.roles["a"].joined.seed
        assert marks[-1] not in (seed.secret, federation.roles["a"].joined.commitments.study)
    assert marks[0] == marks[1] != marks[2]
