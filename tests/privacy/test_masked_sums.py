"""What a lying aggregator reads of a masked sum: each attack against the variant that it breaks.

The unsafe variants are real: sums without self-masks, and clients that answer two lists of parties
as asked, have both been in use.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.randomness import SeededRandomness
from tests.sums import World
from vertibayes_mpc.errors import (
    PartyGoneError,
    ProtocolError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.masked_sum import Neighbourhood, smallest_neighbourhood
from vertibayes_mpc.masked_sum.aggregator import Collection
from vertibayes_mpc.masked_sum.messages import (
    Confirmations,
    Delivered,
    Keys,
    MaskedVector,
    Revealed,
    Survivors,
    as_rows,
    places_of,
)
from vertibayes_mpc.masked_sum.party import SIGNATURES_CHECKED, Contribution
from vertibayes_mpc.masked_sum.roster import Roster
from vertibayes_mpc.masked_sum.seeds import own_mask, pair_masks
from vertibayes_mpc.randomness import KeyPair, StreamKey
from vertibayes_mpc.rounds import Round
from vertibayes_mpc.scheduler import ByHand, Scheduler, run_all
from vertibayes_mpc.shamir import SHARE_BYTES, recover

VICTIM = "p01"


def programs_of(w, cls, aggregator):
    """Return programs in which all parties run one class, and the aggregator lies."""
    programs = {}
    for party, member in w.members.items():
        ours = cls(w.plan, member, "aggregator", w.randomness)
        programs[party] = ours.converse(w.plan.encode(w.vectors[party]))
    return {"aggregator": aggregator.converse()} | programs


def run_until_the_aggregator_ends(programs):
    scheduler = Scheduler(ByHand())
    for party, program in programs.items():
        scheduler.start(party, program)
    return scheduler.finish("aggregator")


# ---- a vector that is late -----------------------------------------------------------------------


class WithoutSelfMask(Contribution):
    """Masks of pairs alone: what Bonawitz et al. (2017), section 4, double-mask against."""

    def mask(self, delivered, elements):
        masked = super().mask(delivered, elements)
        return MaskedVector(masked.context, masked.values - own_mask(self.plan, self.self_mask))


class SaysLate(Collection):
    """Keeps the victim's vector, and tells the others that it dropped out; takes its masks off."""

    def announce_survivors(self, masked):
        self.late = masked.pop(self.plan.place(VICTIM)).values
        return super().announce_survivors(masked)

    def open(self, revealed):
        place, shares = self.plan.place(VICTIM), self._shares(revealed)
        secret = recover(dict(shares[place][: self.plan.neighbourhood.threshold]))
        key = KeyPair(secret.to_bytes(32, "big"))
        peers = {p: q for p, q in zip(self.plan.parties, range(99), strict=False) if p != VICTIM}
        keys = {p: key.agree(self.roster.mask_key(q), "masking") for p, q in peers.items()}
        return self.plan.decode(self.late - pair_masks(self.plan, VICTIM, keys))


def test_without_self_masks_a_vector_that_is_said_to_be_late_is_read():
    w = World(5, length=40)
    read = run_until_the_aggregator_ends(programs_of(w, WithoutSelfMask, SaysLate(w.plan)))
    assert np.array_equal(read, w.vectors[VICTIM])


def test_with_self_masks_the_late_vector_is_uniform():
    """And the same for vectors of zeros and of the bound."""
    views = []
    for value in (0, 100):
        w = World(5, length=6000)
        w.vectors[VICTIM] = np.full(6000, value)
        w.randomness = SeededRandomness(b"late %d" % value)
        views.append(run_until_the_aggregator_ends(programs_of(w, Contribution, SaysLate(w.plan))))
    assert p_value(views, 12) > 1e-3 and p_value(views, 0) > 1e-3


def p_value(views, shift):
    table = np.array([np.bincount((v >> shift) & 15, minlength=16) for v in views])
    return chi2_contingency(table[:, table.any(axis=0)]).pvalue


# ---- both seeds of one party ---------------------------------------------------------------------


class AnswersTwoLists(Contribution):
    """Reveals what is asked: a share of each survivor's self-mask, and of the key of each gone."""

    def reveal(self, gone):
        shares = [self.shares[place].self_mask for place in self.survivors.tolist()]
        shares += [self.shares[place].key for place in gone.survivors.tolist()]
        return Revealed(self.plan.label, as_rows(shares, SHARE_BYTES))

    def converse(self, elements):
        keys = yield from self._ask(self.advertise(), Keys)
        delivered = yield from self._ask(self.share(keys), Delivered)
        survivors = yield from self._ask(self.mask(delivered, elements), Survivors)
        gone = yield from self._ask(self.confirm(survivors), Survivors)
        yield Round({self.aggregator: self.reveal(gone)}, {})


class AsksForBoth(Collection):
    """Names the victim as a survivor, then as gone, and reads its vector from the shares."""

    def announce_survivors(self, masked):
        self.vector = masked[self.plan.place(VICTIM)].values
        return super().announce_survivors(masked)

    def relay_signatures(self, confirmed):
        gone = np.array([self.plan.place(VICTIM)], np.uint32)
        return self._to(self.survivors, Survivors(self.plan.label, gone))

    def open(self, revealed):
        rows = self.plan.place(VICTIM), len(self.survivors)
        seeds = [
            recover({p + 1: number(m.shares[row]) for p, m in revealed.items()}) for row in rows
        ]
        return unmasked(self, self.vector, *seeds)


def test_a_party_that_answers_two_lists_gives_a_vector_away():
    w = World(5, length=40)
    programs = programs_of(w, AnswersTwoLists, AsksForBoth(w.plan))
    assert np.array_equal(run_until_the_aggregator_ends(programs), w.vectors[VICTIM])


def test_an_aggregator_that_asks_for_both_seeds_is_refused():
    """After one list of survivors a party takes signatures of it, and no other list."""
    w = World(5, length=40)
    with pytest.raises(
        UnexpectedMessageError, match="Survivors where Confirmations was expected"
    ) as caught:
        run_until_the_aggregator_ends(programs_of(w, Contribution, AsksForBoth(w.plan)))
    assert caught.value.party == "aggregator"


def number(row):
    return int.from_bytes(row.tobytes(), "big")


def unmasked(aggregator, values, self_mask, key):
    """Take both kinds of masks off the victim's vector."""
    pair, plan = KeyPair(key.to_bytes(32, "big")), aggregator.plan
    peers = {
        plan.parties[p]: pair.agree(aggregator.roster.mask_key(p), "masking")
        for p in aggregator.roster.places.tolist()
        if plan.parties[p] != VICTIM
    }
    own = own_mask(plan, StreamKey(self_mask.to_bytes(32, "big")))
    return plan.decode(values - own - pair_masks(plan, VICTIM, peers))


# ---- two lists of survivors ----------------------------------------------------------------------


class WithoutSignatures(Contribution):
    """Takes the aggregator's word for it that all were told the same."""

    def _check_confirmed(self, place, signature):
        pass


class TellsTwoLists(Collection):
    """Tells some that the victim survived, and others that it did not; a corrupt party helps.

    `told` are those who hear that it survived; `corrupt` gives the aggregator all its shares.
    """

    def __init__(self, plan, told, corrupt=()):
        super().__init__(plan)
        self.told, self.corrupt = told, corrupt

    def announce_survivors(self, masked):
        self.vectors = {place: said.values for place, said in masked.items()}
        everyone = places_of(masked)
        without = everyone[everyone != self.plan.place(VICTIM)]
        super().announce_survivors(masked)
        lists = {place: everyone if self._is_told(place) else without for place in masked}
        return {
            self.plan.parties[place]: Survivors(self.plan.label, survivors)
            for place, survivors in lists.items()
        }

    def _is_told(self, place):
        return self.plan.parties[place] in self.told

    def relay_signatures(self, confirmed):
        signers, signatures = places_of(confirmed), [c.signature for c in confirmed.values()]
        everyone = Confirmations(self.plan.label, signers, as_rows(signatures, 64))
        keep = signers != self.plan.place(VICTIM)
        without = Confirmations(self.plan.label, signers[keep], everyone.signatures[keep])
        return {
            self.plan.parties[place]: everyone if self._is_told(place) else without
            for place in confirmed
        }

    def open(self, revealed):
        """Return the victim's vector, or how many shares of each seed there are."""
        victim, found = self.plan.place(VICTIM), [{}, {}]
        for member, said in revealed.items():
            row = self._members(member).index(victim)
            found[0 if self._is_told(member) else 1][member + 1] = number(said.shares[row])
        for member, both in self.corrupt:
            for kind, share in zip(found, reversed(both[victim]), strict=True):
                kind[member + 1] = int.from_bytes(share, "big")
        if min(map(len, found)) < self.plan.neighbourhood.threshold:
            return tuple(map(len, found))
        wanted = self.plan.neighbourhood.threshold
        seeds = [recover(dict(list(kind.items())[:wanted])) for kind in found]
        return unmasked(self, self.vectors[victim], *seeds)


def two_lists(cls, threshold):
    """p01 is the victim, p04 corrupt; p00 and p01 hear that p01 survived, p02 and p03 not."""
    w = World(5, length=40, neighbourhood=Neighbourhood(4, threshold))
    corrupt = cls(w.plan, w.members["p04"], "aggregator", w.randomness)
    aggregator = TellsTwoLists(w.plan, ["p00", VICTIM], [(4, corrupt.shares)])
    programs = programs_of(w, cls, aggregator)
    programs["p04"] = corrupt.converse(w.plan.encode(w.vectors["p04"]))
    return w, run_until_the_aggregator_ends(programs)


def test_with_a_threshold_too_low_and_no_signatures_two_lists_open_a_vector():
    """t = 3 of 5 is no neighbourhood for a corrupt party: 2 t > 5 + 1 is wanted."""
    w, read = two_lists(WithoutSignatures, 3)
    assert np.array_equal(read, w.vectors[VICTIM])


def test_the_threshold_alone_withstands_two_lists():
    assert smallest_neighbourhood(5, 1, 1) == (4, 4)
    _, shares = two_lists(WithoutSignatures, 4)
    assert shares == (3, 3)


@pytest.mark.parametrize("threshold", [3, 4])
def test_signed_lists_are_refused_when_they_differ(threshold):
    with pytest.raises(ProtocolError, match="sent lists to p0") as caught:
        two_lists(Contribution, threshold)
    assert caught.value.party == "aggregator"


def test_in_a_large_circle_all_notice_two_lists():
    """Half of the parties hear each list, and each checks 32 signatures of its own choice."""
    w = World(120, length=1, neighbourhood=Neighbourhood(4, 3))
    parties = {
        party: Contribution(w.plan, member, "aggregator", w.randomness)
        for party, member in w.members.items()
    }
    programs = {p: ours.converse(w.plan.encode(w.vectors[p])) for p, ours in parties.items()}
    run_all({"aggregator": Collection(w.plan).converse()} | programs)
    for ours in list(parties.values())[1::2]:
        ours.survivors = ours.survivors[:-1]
    signed = [ours.member.signing.sign(ours._transcript) for ours in parties.values()]
    signers = np.arange(119, dtype=np.uint32)
    confirmations = Confirmations(w.plan.label, signers, as_rows(signed[:119], 64))
    assert SIGNATURES_CHECKED < 119
    for ours in parties.values():
        with pytest.raises(ProtocolError, match="did not sign") as caught:
            ours.reveal(confirmations)
        assert caught.value.party == "aggregator"


# ---- a key advertised twice ----------------------------------------------------------------------


class Copies(Contribution):
    """Advertises the mask key of p00 as its own: another's masks with the two then cancel."""

    stolen: bytes

    def advertise(self):
        self.mask_pair.__dict__["public"] = type(self).stolen
        return super().advertise()

    def mask(self, delivered, elements):
        super().mask(delivered, elements)
        return MaskedVector(self.plan.label, elements)


def copied_keys(monkeypatch, is_checked):
    if not is_checked:
        monkeypatch.setattr(Roster, "check_keys", lambda *args: None)
    w = World(3, length=40)
    honest = {
        p: Contribution(w.plan, w.members[p], "aggregator", w.randomness) for p in ("p00", VICTIM)
    }
    Copies.stolen = honest["p00"].mask_pair.public
    honest["p02"] = Copies(w.plan, w.members["p02"], "aggregator", w.randomness)
    programs = {p: ours.converse(w.plan.encode(w.vectors[p])) for p, ours in honest.items()}
    aggregator, seen = Collection(w.plan), {}
    aggregator._checked = lambda values: None

    class Watching(ByHand):
        def pack(self, sent):
            seen[sent.sender, type(sent.message)] = sent.message
            return super().pack(sent)

    scheduler = Scheduler(Watching())
    scheduler.start("aggregator", aggregator.converse())
    for party, program in programs.items():
        scheduler.start(party, program)
    scheduler.finish("aggregator")
    seed = honest[VICTIM].self_mask  # the aggregator recovers it, as of each survivor
    masked = seen[VICTIM, MaskedVector].values
    return w, w.plan.decode(masked - own_mask(w.plan, seed))


def test_with_a_copied_key_the_masks_of_a_survivor_cancel(monkeypatch):
    w, read = copied_keys(monkeypatch, is_checked=False)
    assert np.array_equal(read, w.vectors[VICTIM])


def test_a_copied_key_is_refused(monkeypatch):
    with pytest.raises(UnknownFaultyPartyError, match="advertised the same key") as caught:
        copied_keys(monkeypatch, is_checked=True)
    assert caught.value.parties == ("p00", "p02")


# ---- an aggregator that leaves a party nobody --------------------------------------------------


def test_an_aggregator_that_leaves_a_party_few_neighbours_is_refused():
    """Else a party whose neighbours are all corrupt, or said to be gone, has no masks left."""
    w = World(9, neighbourhood=Neighbourhood(4, 4))

    class LeavesFew(Collection):
        def relay_shares(self, shared):
            around = set(self.roster.circle.around(self.plan.place(VICTIM)).tolist())
            kept = sorted(around)[:3] + [p for p in shared if p not in around]
            self.roster.check_left = lambda of, left: None
            return super().relay_shares({p: shared[p] for p in sorted(kept)})

    with pytest.raises(PartyGoneError, match="the sum needs"):
        run_until_the_aggregator_ends(programs_of(w, Contribution, LeavesFew(w.plan)))


def test_another_spelling_of_a_key_gives_another_mask():
    """X25519 ignores the last bit: a copied key that differs in it alone is no equal key."""
    ours, theirs = (KeyPair.generate(SeededRandomness(seed)) for seed in (b"a", b"b"))
    spelled = theirs.public[:31] + bytes([theirs.public[31] ^ 128])
    assert ours.agree(spelled, "masking") != ours.agree(theirs.public, "masking")
