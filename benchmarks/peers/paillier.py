"""Paillier beside phe with gmpy2, and a table of 1,000 records beside phe's and MPyC's."""

from __future__ import annotations

import secrets

import numpy as np
from peers.mpyc_run import mpyc_seconds
from phe import paillier as phe
from side_by_side import seconds_of

from vertibayes_mpc.paillier import Column, PrivateKey, TablePlan, count_tables, open_tables
from vertibayes_mpc.paillier.interchange import to_phe_private
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_mpc.scheduler import run_all

RECORDS, STATES = 1000, 4
RANDOMNESS = SystemRandomness()
TRUST = "two parties, no dealer; DCR"
CODES = np.random.default_rng(0).integers(0, STATES, (2, RECORDS))


def row(setting: str, ours: float, peer: str, theirs: float, trust: str = TRUST) -> list[str]:
    ratio = f"{theirs / ours:.1f}" if theirs > ours / 5 else f"{theirs / ours:.2f}"
    return [f"Paillier: {setting}", shown(ours), peer, shown(theirs), ratio, TRUST, trust]


def shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.3g} ms"


def primitives(key: PrivateKey) -> list[list[str]]:
    bits, theirs = key.public.bits, to_phe_private(key)
    values = [secrets.randbelow(2**256) for _ in range(250)]
    key.encrypt([], RANDOMNESS)  # makes the tables
    few = values[:5]
    encrypted = key.encrypt(few, RANDOMNESS)
    numbers = [theirs.public_key.encrypt(value) for value in few]
    owner = seconds_of(lambda: key.encrypt(values, RANDOMNESS), 15) / len(values)
    anybody = seconds_of(lambda: key.public.encrypt(few, RANDOMNESS), 5) / len(few)
    decrypt = seconds_of(lambda: key.decrypt(encrypted), 9) / len(few)
    phe_encrypt = seconds_of(lambda: [theirs.public_key.encrypt(v) for v in few], 5) / len(few)
    phe_decrypt = seconds_of(lambda: [theirs.decrypt(number) for number in numbers], 9) / len(few)
    return [
        row(f"encryption by the owner, {bits} bits", owner, "phe, gmpy2", phe_encrypt),
        row(f"encryption by anybody, {bits} bits", anybody, "phe, gmpy2", phe_encrypt),
        row(f"decryption, {bits} bits", decrypt, "phe, gmpy2", phe_decrypt),
    ]


def our_table(key: PrivateKey) -> None:
    columns = [Column(site, "column", STATES) for site in ("owner", "the other")]
    keys = {column.site: key.public for column in columns}
    plan = TablePlan(b"table", keys, RECORDS, (tuple(columns),))
    programs = {
        column.site: count_tables(plan, column.site, "analyst", key, {column: codes}, RANDOMNESS)
        for column, codes in zip(columns, CODES, strict=True)
    }
    outputs, _ = run_all(programs | {"analyst": open_tables(plan)})
    check(outputs["analyst"][0])


def check(found: np.ndarray) -> None:
    counts = np.zeros((STATES, STATES), np.int64)
    np.add.at(counts, tuple(CODES), 1)
    assert np.array_equal(found, counts)


def phe_table(key: phe.PaillierPrivateKey) -> None:
    """Run the same protocol on phe's numbers, with no bytes in between."""
    public = key.public_key
    column = [public.encrypt(1 << 32 * int(x)) for x in CODES[0]]
    found = np.zeros((STATES, STATES), np.int64)
    for state in range(STATES):
        mask = secrets.randbelow(public.max_int - 2 ** (32 * STATES))  # phe's own range
        answer = sum((column[i] for i in np.flatnonzero(CODES[1] == state)), public.encrypt(mask))
        packed = key.decrypt(answer) - mask
        found[:, state] = [packed >> 32 * x & 0xFFFFFFFF for x in range(STATES)]
    check(found)


def rows() -> list[list[str]]:
    """Return [primitive, ours, peer, peer's, peer's / ours, our trust, the peer's trust]."""
    keys = [PrivateKey.generate(bits) for bits in (2048, 3072)]
    found = [line for key in keys for line in primitives(key)]
    ours = seconds_of(lambda: our_table(keys[0]), 5)
    setting = f"{STATES} x {STATES} table, {RECORDS} records, 2048 bits"
    theirs = seconds_of(lambda: phe_table(to_phe_private(keys[0])), 1)
    found.append(row(setting, ours, "the same protocol on phe", theirs))
    first = seconds_of(lambda: our_table(PrivateKey(keys[0].p, keys[0].q)), 3)
    found.append(row(f"{setting}, first use of a key", first, "the same protocol on phe", theirs))
    honest = "three parties, no two of them together (two parties: threshold 0, hides nothing)"
    mpyc = mpyc_seconds("mpyc_table.py", RECORDS)
    if mpyc is None:
        return [*found, [f"Paillier: {setting}", shown(ours), "MPyC -M3", "-", "-", TRUST, honest]]
    return [*found, row(setting, ours, "MPyC -M3, Shamir", mpyc, honest)]
