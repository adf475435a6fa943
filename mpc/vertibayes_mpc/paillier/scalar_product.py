"""Contingency tables of columns of two parties, by Paillier's cryptosystem, without a dealer.

The owner has the key and a column x, the other party one or more columns y of the same n records.
The analyst receives the tables. Each row is one message.

    owner -> other      c_i = Enc(2^(b x_i))                         each record i; b bits a slot
    other -> owner      C_j = Enc(rho_j) prod_{i: y_i = j} c_i       each state j of each column y
    other -> analyst    rho_j, uniform in Z_N
    owner -> analyst    D_j = Dec(C_j)
    analyst             D_j - rho_j mod N = sum_k #(x = k, y = j) 2^(b k)

Security: honest-but-curious. The other party sees ciphertexts, which reveal nothing if nobody can
distinguish N-th residues modulo N^2 from other units (decisional composite residuosity). For the
owner C_j is uniform in Z_{N^2}^*, by rho_j and by the fresh randomness of Enc(rho_j). For the
analyst rho_j is uniform, and D_j is rho_j + the counts. These two views need no assumption. The
analyst together with either party learns the tables and no more. Only the analyst may see the
masks: an owner who reads the analyst's link to the other party reads the tables.
Leakage: the tables, to the analyst; n, block size and numbers of states, to all.
Cost: 3 rounds. n ciphertexts to the other party (512 bytes each at 2048 bits), one back for each of
its states, and as many integers modulo N from both to the analyst.

References
----------
Goethals, Laur, Lipmaa and Mielikainen (2004), On private scalar product computation for
privacy-preserving data mining: the protocol from homomorphic encryption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vertibayes_mpc.errors import (
    ReplayedMessageError,
    UnexpectedMessageError,
    UnknownFaultyPartyError,
)
from vertibayes_mpc.integers import fast, uniform_below
from vertibayes_mpc.paillier.keys import PrivateKey, PublicKey
from vertibayes_mpc.paillier.messages import (
    Answer,
    EncryptedBlock,
    Integers,
    MaskedCounts,
    Masks,
    ciphertexts_of,
    expect,
    plaintexts_of,
    to_bytes,
)
from vertibayes_mpc.paillier.vectors import Packing
from vertibayes_mpc.randomness import Randomness, label
from vertibayes_mpc.rounds import Expect, Party, Program, exchange, send


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What three different parties agree on before they count; a ValueError if it does not fit."""

    study: bytes  # names this count, unlike every other under the key
    public: PublicKey  # the owner's
    owner: Party
    other: Party
    analyst: Party
    records: int  # n, at most what a slot can count
    owner_states: int  # at most the slots: 63 at 2048 bits, 95 at 3072
    other_states: tuple[int, ...]  # of each of the other party's columns
    slot_bits: int = 32
    block: int = 1024  # records of a message

    def __post_init__(self) -> None:
        if len({self.owner, self.other, self.analyst}) != 3:
            raise ValueError("owner, other and analyst must be three different parties")
        if not 0 <= self.records <= self.packing.largest:
            limit = f"{self.packing.largest} (a slot has {self.slot_bits} bits)"
            raise ValueError(f"records must be from 0 to {limit}, got {self.records}")
        if not 1 <= self.owner_states <= self.packing.slots:
            limit = f"{self.packing.slots} (the slots of {self.slot_bits} bits in a plaintext)"
            raise ValueError(f"owner_states must be from 1 to {limit}, got {self.owner_states}")
        if min(self.other_states, default=0) < 1 or self.block < 1:
            raise ValueError("other_states and block must be at least 1, with at least one column")

    @property
    def label(self) -> bytes:
        """A digest of the plan: part of every message."""
        parties = self.owner, self.other, self.analyst
        numbers = self.records, self.owner_states, *self.other_states, self.slot_bits, self.block
        modulus = self.public.modulus.to_bytes(self.public.plaintext_bytes, "big")
        return label("paillier table", self.study, modulus, *parties, *numbers)

    @property
    def packing(self) -> Packing:
        """How the owner's counts lie in a plaintext."""
        return Packing(self.public.bits, self.slot_bits)

    @property
    def answers(self) -> int:
        """The number of states of all columns of the other party."""
        return sum(self.other_states)

    @property
    def blocks(self) -> Iterator[slice]:
        """The records of each message, in order."""
        for start in range(0, self.records, self.block):
            yield slice(start, min(start + self.block, self.records))


def encrypt_column(
    plan: TablePlan, key: PrivateKey, codes: NDArray[np.integer], randomness: Randomness
) -> Program[None]:
    """Send the owner's column encrypted, and decrypt the answer: the owner's side.

    `key` is the private key of `plan.public`; `codes` are integers of shape (records,), the state
    of each record, from 0 on. A ValueError says that the key or the column is not that of the plan;
    a MalformedMessageError names the other party if its answer has a wrong shape, or a number is
    not a ciphertext.
    """
    if key.public != plan.public:
        raise ValueError("the key is not that of the plan")
    indicators = [1 << plan.slot_bits * state for state in range(plan.owner_states)]
    states = _checked(codes, plan.records, plan.owner_states).tolist()
    width = plan.public.ciphertext_bytes
    for rows in plan.blocks:
        ciphertexts = key.encrypt([indicators[state] for state in states[rows]], randomness)
        block = EncryptedBlock(plan.label, to_bytes(ciphertexts, width), rows.start)
        yield from send({plan.other: block})
    received = yield from exchange({}, {plan.other: expect(Answer, plan.answers, width)})
    answer = ciphertexts_of(received[plan.other], plan.other, plan.label, plan.answers, plan.public)
    counts = to_bytes(key.decrypt(answer), plan.public.plaintext_bytes)
    yield from send({plan.analyst: MaskedCounts(plan.label, counts)})


def count_by_state(
    plan: TablePlan, columns: Sequence[NDArray[np.integer]], randomness: Randomness
) -> Program[None]:
    """Multiply the ciphertexts of the records of each state, and mask them: the other side.

    The columns are as in `encrypt_column`. An error names the owner if a block is malformed
    (MalformedMessageError), came before (ReplayedMessageError), or is not the next one
    (UnexpectedMessageError).
    """
    offsets = np.cumsum((0, *plan.other_states[:-1]))
    columns = [
        start + _checked(column, plan.records, states)
        for start, column, states in zip(offsets, columns, plan.other_states, strict=True)
    ]
    products = [fast(1)] * plan.answers
    for rows in plan.blocks:
        ciphertexts = yield from _receive_block(plan, rows)
        for column in columns:
            for place, ciphertext in zip(column[rows].tolist(), ciphertexts, strict=True):
                products[place] = products[place] * ciphertext % plan.public.square
    masks = [uniform_below(plan.public.modulus, randomness) for _ in products]
    answer = plan.public.add(products, plan.public.encrypt(masks, randomness))
    yield from send(
        {
            plan.owner: Answer(plan.label, to_bytes(answer, plan.public.ciphertext_bytes)),
            plan.analyst: Masks(plan.label, to_bytes(masks, plan.public.plaintext_bytes)),
        }
    )


def open_tables(plan: TablePlan) -> Program[list[NDArray[np.int64]]]:
    """Subtract the masks and unpack the counts: the analyst's side.

    Returns, for each column of the other party, an int64 table of shape (owner_states, states). A
    MalformedMessageError says that a message has a wrong shape or range; an UnknownFaultyPartyError
    names both parties, if their messages do not add up to tables of `records` records.
    """
    limit = plan.answers, plan.public.plaintext_bytes
    expected: dict[Party, Expect[Integers]] = {
        plan.owner: expect(MaskedCounts, *limit),
        plan.other: expect(Masks, *limit),
    }
    received = yield from exchange({}, expected)
    masked, masks = (
        plaintexts_of(received[p], p, plan.label, plan.answers, plan.public) for p in expected
    )
    sums = [(d - rho) % plan.public.modulus for d, rho in zip(masked, masks, strict=True)]
    try:
        columns = np.array([plan.packing.unpack([packed], plan.owner_states) for packed in sums])
        tables = np.split(columns.T, np.cumsum(plan.other_states[:-1]), axis=1)
        if any(table.sum() != plan.records for table in tables):
            raise ValueError("counts of other records")
    except ValueError:
        reason = f"their messages do not add up to tables of {plan.records} records"
        raise UnknownFaultyPartyError((plan.owner, plan.other), reason) from None
    return tables


def _receive_block(plan: TablePlan, rows: slice) -> Program[list[int]]:
    """Receive the ciphertexts of these records, and no others."""
    count = rows.stop - rows.start
    limit = expect(EncryptedBlock, count, plan.public.ciphertext_bytes)
    message = (yield from exchange({}, {plan.owner: limit}))[plan.owner]
    reason = f"sent records from {message.start} on; expected records from {rows.start} on"
    if message.start < rows.start:
        raise ReplayedMessageError(plan.owner, reason)
    if message.start > rows.start:
        raise UnexpectedMessageError(plan.owner, reason)
    return ciphertexts_of(message, plan.owner, plan.label, count, plan.public)


def _checked(codes: NDArray[np.integer], records: int, states: int) -> NDArray[np.int64]:
    """Return a column's codes; errors do not reveal any."""
    if codes.shape != (records,) or not np.issubdtype(codes.dtype, np.integer):
        given = f"shape {codes.shape} and type {codes.dtype}"
        raise ValueError(f"a column must be integers of shape {(records,)}, got {given}")
    if codes.size and not (codes.min() >= 0 and codes.max() < states):
        raise ValueError(f"codes must be from 0 to {states - 1}")
    return codes.astype(np.int64)
