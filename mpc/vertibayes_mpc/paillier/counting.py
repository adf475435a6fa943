"""Contingency tables of columns of several sites, by Paillier's cryptosystem, without a dealer.

Each site holds one column of the table, over the same n records: x at the owner, whose key is used,
y at the second site, and so on; z at the last site. The analyst receives the table. With two sites,
the owner sends directly to the last one. X is the number of states of x. Each row is one message.

    owner -> second     c_i = Enc(2^(b x_i))                         each record i; b bits a slot
    second -> last      d_i = c_i^(2^(b X y_i))                      = Enc(2^(b (x_i + X y_i)))
    last -> owner       C_j = Enc(rho_j) prod_{i: z_i = j} d_i       each state j of z
    last -> analyst     rho_j, uniform in Z_N
    owner -> analyst    D_j = Dec(C_j)
    analyst             D_j - rho_j mod N = sum_k #(x + X y = k, z = j) 2^(b k)

A fourth site and more stand between the second and the last: each multiplies like the second, and
by a fresh r^N. A record without a state is Enc(0): fresh at the owner, c_i^N at the others. Where
the slots of a plaintext do not suffice for all (x, y), several passes count some of them each; and
where they do, one C holds many states and tables, each moved to slots of its own by squarings.

Security: honest-but-curious. The sites after the owner see ciphertexts, which reveal nothing if
nobody can distinguish N-th residues modulo N^2 from other units (decisional composite residuosity).
The last site has not seen c_i: d_i looks to it like a fresh encryption, as the owner's randomizers
have odd order where a third site follows (`PrivateKey.encrypt_odd`), and no ciphertext is passed on
twice. For the owner C_j is uniform in Z_{N^2}^*, by rho_j and the fresh randomness of Enc(rho_j).
For the analyst rho_j is uniform, and D_j is rho_j + the counts. These two views need no assumption.
Who may work together: of a table of two sites, any two; the analyst and either site learn the table
and no more. Of a table of three sites and more, THE OWNER MUST NOT WORK WITH THE THIRD SITE OR ONE
AFTER IT: it decrypts what they receive, and reads the other sites' records. Only the analyst may
see the masks: an owner who reads the last site's link to the analyst reads the table.
Leakage: the tables, to the analyst; n, and the names and numbers of states of columns, to all. A
site between others does the same operations whatever its records have: it moves each to all places,
and makes each 0 if one may be. Python's and gmpy2's arithmetic is not constant-time.
Cost: k + 1 rounds for k sites. n ciphertexts from each site to the next (512 bytes each at 2048
bits), few back, and as many integers modulo N from both to the analyst.

References
----------
Goethals, Laur, Lipmaa and Mielikainen (2004), On private scalar product computation for
privacy-preserving data mining: the protocol of two parties from homomorphic encryption.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import UnknownFaultyPartyError
from vertibayes_mpc.integers import fast, separated, uniform_below
from vertibayes_mpc.paillier.keys import PrivateKey, PublicKey
from vertibayes_mpc.paillier.messages import (
    Answer,
    EncryptedColumns,
    MaskedCounts,
    Masks,
    checked_by,
    expect,
    integers_of,
    to_bytes,
)
from vertibayes_mpc.paillier.plan import Chain, Column, Link, Piece, TablePlan, Vector
from vertibayes_mpc.randomness import Randomness
from vertibayes_mpc.rounds import Party, Program, exchange, send

Codes = NDArray[np.integer]  # of a column: shape (records,); -1 where a record has no state
Ciphertexts = Sequence[int]


def count_tables(
    plan: TablePlan,
    site: Party,
    analyst: Party,
    key: PrivateKey,
    columns: Mapping[Column, Codes],
    randomness: Randomness,
) -> Program[None]:
    """Encrypt, multiply and count a site's columns of the tables of a plan.

    `key` is the site's, and `columns` has all its columns: integers of shape (records,), from 0 on,
    or -1 where a record has no state. A ValueError says that the key or a column is not that of the
    plan. A MalformedMessageError names a site whose message has a wrong shape or a number that is
    not a ciphertext; an UnexpectedMessageError one whose message belongs to another plan or step.
    """
    if key.public != plan.keys.get(site):
        raise ValueError("the key is not that of the plan")
    if analyst in plan.keys:
        raise ValueError(f"the analyst must not hold a column: {analyst}")
    states = {c: _checked(codes, c, plan) for c, codes in columns.items()}
    at_site = _Site(plan, site, key, states, randomness)
    received: dict[Vector, Ciphertexts] = {}
    for step in range(1, plan.steps + 1):
        ready = at_site.multiplied(received, step) if step > 1 else at_site.encrypted()
        received = yield from at_site.passed_on(ready, step)
        at_site.count(received, step)
    yield from at_site.answer(analyst)


@dataclass
class _Site:
    """What a site does with its columns, in the steps of a plan."""

    plan: TablePlan
    site: Party
    key: PrivateKey = field(repr=False)
    states: Mapping[Column, list[int]] = field(repr=False)
    randomness: Randomness = field(repr=False)
    counted: dict[Piece, int] = field(default_factory=dict, repr=False)  # still encrypted

    def encrypted(self) -> dict[Vector, Ciphertexts]:
        """Encrypt the columns of which it is the owner: each vector once."""
        links = self.plan.passed[0].items()
        vectors = dict.fromkeys(v for (sender, _), vs in links if sender == self.site for v in vs)
        return {vector: self._encrypted(vector) for vector in vectors}

    def _encrypted(self, vector: Vector) -> Ciphertexts:
        """Encrypt the place of each state that is counted, and 0 for others."""
        column, counted = self.plan.encrypted(vector)
        places = [
            1 << self.plan.slot_bits * (state - counted.start) if state in counted else 0
            for state in self.states[column]
        ]
        passed_on = not isinstance(vector, tuple)
        return (self.key.encrypt_odd if passed_on else self.key.encrypt)(places, self.randomness)

    def passed_on(
        self, ready: Mapping[Vector, Ciphertexts], step: int
    ) -> Program[dict[Vector, Ciphertexts]]:
        """Send the vectors of a step, and receive those of others."""
        plan, width = self.plan, 2 * self.plan.plaintext_bytes
        links = plan.passed[step - 1].items()
        sent = {receiver: vs for (sender, receiver), vs in links if sender == self.site}
        due = {sender: vs for (sender, receiver), vs in links if receiver == self.site}
        joined = {peer: [c for v in vs for c in ready[v]] for peer, vs in sent.items()}
        label = plan.label_of(step)
        outbox = {p: EncryptedColumns(label, to_bytes(cs, width)) for p, cs in joined.items()}
        counts = {peer: plan.records * len(vs) for peer, vs in due.items()}
        expected = {p: expect(EncryptedColumns, count, width) for p, count in counts.items()}
        messages = (yield from exchange(outbox, expected)) if outbox or expected else {}
        received = dict[Vector, Ciphertexts]()
        for peer, message in messages.items():
            integers = integers_of(message, peer, label, counts[peer], width)
            for at, vector in enumerate(due[peer]):
                part = integers[at * plan.records : (at + 1) * plan.records]
                check = plan.keys[plan.owner(vector)].check_ciphertexts
                received[vector] = checked_by(check, part, peer)
        return received

    def multiplied(
        self, received: Mapping[Vector, Ciphertexts], step: int
    ) -> dict[Vector, Ciphertexts]:
        """Move the ciphertexts that it passes on to the slots of its own states."""
        return {
            number: self._multiplied(chain, received[number], step - 1)
            for number, chain in self._chains(step - 1)
            if len(chain.columns) > step
        }

    def _multiplied(self, chain: Chain, ciphertexts: Ciphertexts, place: int) -> Ciphertexts:
        public, column = self.plan.keys[chain.owner], chain.columns[place]
        counted, bits = chain.ranges[place], self.plan.slot_bits * chain.widths[place]
        is_zero = self.plan.may_be_outside(column, counted)
        moved = [
            _each_place(public, c, bits, len(counted), is_zero)[
                state - counted.start if state in counted else -1
            ]
            for c, state in zip(ciphertexts, self.states[column], strict=True)
        ]
        # Sites before the third have all seen these ciphertexts: one after it must not tell which.
        return public.rerandomize(moved, self.randomness) if place > 1 else moved

    def count(self, received: Mapping[Vector, Ciphertexts], step: int) -> None:
        """Multiply the ciphertexts of the records of each state, in the chains that end here."""
        for number, chain in self._chains(step):
            if len(chain.columns) == step + 1:
                column, square = chain.columns[step], self.plan.keys[chain.owner].square
                products = [fast(1)] * (column.states + 1)  # the last one of records without state
                vector = received[self.plan.vector(number)]
                for state, ciphertext in zip(self.states[column], vector, strict=True):
                    products[state] = products[state] * ciphertext % square
                pieces = (Piece(number, state) for state in range(column.states))
                self.counted |= zip(pieces, products, strict=False)

    def _chains(self, place: int) -> Iterable[tuple[int, Chain]]:
        """Go through the chains in which the site has this place."""
        for number, chain in enumerate(self.plan.chains):
            if len(chain.columns) > place and chain.columns[place].site == self.site:
                yield number, chain

    def answer(self, analyst: Party) -> Program[None]:
        """Send what it has counted under masks, and the masks; decrypt the others' answers."""
        plan, width, label = self.plan, self.plan.plaintext_bytes, self.plan.label_of(0)
        outbox: dict[Party, Answer | Masks] = {}
        masks = list[int]()
        for owner in plan.answers_of(self.site, 0):
            sums, drawn = self._masked(plan.keys[owner], plan.answers[self.site, owner])
            outbox[owner] = Answer(label, to_bytes(sums, 2 * width))
            masks += drawn
        if masks:
            outbox[analyst] = Masks(label, to_bytes(masks, width))
        due = plan.answers_of(self.site, 1)
        expected = {last: expect(Answer, count, 2 * width) for last, count in due.items()}
        received = yield from exchange(outbox, expected)
        plaintexts = list[int]()
        for last, message in received.items():
            answers = integers_of(message, last, label, due[last], 2 * width)
            checked_by(self.key.public.check_ciphertexts, answers, last)
            plaintexts += self.key.decrypt(answers)
        if due:
            yield from send({analyst: MaskedCounts(label, to_bytes(plaintexts, width))})

    def _masked(
        self, public: PublicKey, groups: Sequence[Sequence[Piece]]
    ) -> tuple[Ciphertexts, list[int]]:
        """Return the pieces of each answer in slots of their own, under a mask, and the masks."""
        sums = list[int]()
        for *lower, highest in groups:
            total = self.counted[highest]
            for piece in reversed(lower):
                width = self.plan.slot_bits * self.plan.chains[piece.chain].widths[-1]
                total = public.shift(total, width) * self.counted[piece] % public.square
            sums.append(total)
        masks = [uniform_below(public.modulus, self.randomness) for _ in sums]
        return public.add(sums, public.encrypt(masks, self.randomness)), masks


def _each_place(
    public: PublicKey, ciphertext: int, bits: int, places: int, is_zero: bool
) -> Ciphertexts:
    """Move a ciphertext to each place, and then to 0: the same work whatever its record has."""
    each = [ciphertext]
    while len(each) < places:
        each.append(public.shift(each[-1], bits))
    return [*each, public.zero(ciphertext)] if is_zero else each


def open_tables(plan: TablePlan) -> Program[list[NDArray[np.int64]]]:
    """Subtract the masks and unpack the counts: the analyst's side.

    Returns the tables of the plan, int64 arrays with an axis for each column. A
    MalformedMessageError says that a message has a wrong shape or range; an UnknownFaultyPartyError
    names sites of which at least one is at fault, as their messages do not add up to tables of
    `records` records.
    """
    masks = yield from _received(plan, Masks, 0)
    masked = yield from _received(plan, MaskedCounts, 1)
    tables = [np.zeros([c.states for c in table], np.int64) for table in plan.tables]
    for (last, owner), groups in plan.answers.items():
        for group, mask, sum_ in zip(groups, masks[last, owner], masked[last, owner], strict=True):
            _unpack(plan, tables, group, (sum_ - mask) % plan.keys[owner].modulus)
    for columns, table in zip(plan.tables, tables, strict=True):
        counted = int(table.sum())
        if counted > plan.records or (plan.complete and counted < plan.records):
            raise _faulty(plan, [c.site for c in columns])
    return tables


def _received(
    plan: TablePlan, kind: type[Masks] | type[MaskedCounts], place: int
) -> Program[dict[Link, Sequence[int]]]:
    """Receive the masks of all last sites (place 0), or what all owners (1) have decrypted."""
    width, label = plan.plaintext_bytes, plan.label_of(0)
    senders = sorted({link[place] for link in plan.answers})
    counts = {p: plan.answers_of(p, place) for p in senders}
    expected = {p: expect(kind, sum(c.values()), width) for p, c in counts.items()}
    received = dict[Link, Sequence[int]]()
    for sender, message in (yield from exchange({}, expected)).items():
        integers = integers_of(message, sender, label, sum(counts[sender].values()), width)
        for peer, count in counts[sender].items():
            link = (sender, peer) if place == 0 else (peer, sender)
            check = plan.keys[link[1]].check_plaintexts
            received[link] = checked_by(check, integers[:count], sender)
            del integers[:count]
    return received


def _unpack(
    plan: TablePlan, tables: list[NDArray[np.int64]], group: list[Piece], sum_: int
) -> None:
    """Put the counts of an answer into their places in the tables."""
    chains = [plan.chains[piece.chain] for piece in group]
    widths = [chain.widths[-1] for chain in chains]
    try:
        counts = separated([sum_], plan.slot_bits, sum(widths), sum(widths))
    except ValueError:
        raise _faulty(plan, [c.site for chain in chains for c in chain.columns]) from None
    for piece, chain, width in zip(group, chains, widths, strict=True):
        part, counts = np.array(counts[:width], np.int64), counts[width:]
        states = [*chain.ranges, range(piece.state, piece.state + 1)]
        where = dict(zip(chain.columns, states, strict=True))
        axes = [chain.columns.index(column) for column in plan.tables[chain.table]]
        cells = part.reshape([len(s) for s in states], order="F").transpose(axes)
        tables[chain.table][np.ix_(*(where[c] for c in plan.tables[chain.table]))] = cells


def _faulty(plan: TablePlan, sites: Sequence[Party]) -> UnknownFaultyPartyError:
    reason = f"their messages do not add up to tables of {plan.records} records"
    return UnknownFaultyPartyError(sorted({*sites}), reason)


def _checked(codes: Codes, column: Column, plan: TablePlan) -> list[int]:
    """Return a column's codes; errors do not reveal any."""
    if codes.shape != (plan.records,) or not np.issubdtype(codes.dtype, np.integer):
        given = f"shape {codes.shape} and type {codes.dtype}"
        raise ValueError(f"a column must be integers of shape {(plan.records,)}, got {given}")
    least, most = -plan.may_be_outside(column, range(column.states)), column.states - 1
    if codes.size and not (codes.min() >= least and codes.max() <= most):
        raise ValueError(f"codes must be from {least} to {most}")
    return [int(code) for code in codes.tolist()]
