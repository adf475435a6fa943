"""One schedule: a consortium, a study that is run until it ends, and what came of it.

seed -> world -> faults -> the command, given again after each failure -> outcome -> oracle
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag

from tests.simulation import oracle
from tests.simulation.disk import System
from tests.simulation.faults import drawn
from tests.simulation.parties import NAMED, Analyst, Dealer, Relay, Site, key_pairs
from tests.simulation.world import Killed, World
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols import clock, seal
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.seal import Identity
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Variable

MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
DEALER, ANALYST = "dealer", "analyst"


class Shape(NamedTuple):
    """A consortium: the columns of its sites, and whether a structure is chosen or given."""

    columns: dict
    chooses: bool


SHAPES = (
    Shape({"a": ("x",), "b": ("y",), "c": ("z",)}, True),
    Shape({"a": ("x", "y"), "b": ("z",)}, True),
    Shape({"a": ("x",), "b": ("y",)}, True),
    Shape({"a": ("x", "y"), "b": ("z",)}, False),
)
OF_SEEDS = 0, 1, *(2,) * 5, *(3,) * 13  # by the last digits: schedules of small shapes are quick
RECORDS = 40
MOST_COMMANDS = 8
WAIT = 100.0  # simulated seconds between two commands
RULE = Rule("cut", fewest=5)


class Outcome(NamedTuple):
    """What came of a schedule."""

    kind: str  # identical, refused, error, or failure
    reason: str
    faults: dict
    points: int
    digest: str  # of all that happened


@cache
def identities(parties):
    """Return the static keys of all parties; equal in all worlds, which agree on them once."""
    pairs = key_pairs(Random("keys"), parties)
    public = {name: pair.public for name, pair in pairs.items()}
    return {
        name: Identity(name, pairs[name], {p: key for p, key in public.items() if p != name})
        for name in parties
    }


def data_of(columns, records=RECORDS):
    """Draw the columns of all sites, which depend on each other."""
    draw, states, drawn_before, data = np.random.default_rng(3), ("no", "yes", "so"), None, {}
    for site, names in columns.items():
        codes = {}
        for name in names:
            new = draw.integers(0, 3, records)
            if drawn_before is not None:
                new = np.where(draw.random(records) < 0.5, drawn_before, new)
            codes[name] = drawn_before = new.astype(np.uint8)
        data[site] = SiteData({name: Variable(name, states) for name in names}, codes)
    return data


def release_alone(study):
    """Release the families of a chain of the variables by the rule."""
    names = tuple(study.variables)
    chain = zip(names, [(), *((name,) for name in names)], strict=False)
    yield FamilyTables(tuple(Family(*family) for family in chain), False, RULE)


def choose_and_release(study):
    """Choose a parent of each variable in turn, then release the families by the rule."""
    names, parents = tuple(study.variables), [()]
    for at, child in enumerate(names[1:], 1):
        gains = ((Score(Family(child, (z,))), Score(Family(child), (z,), -1)) for z in names[:at])
        (won,) = yield Choices((((), *gains),))
        parents.append((names[won - 1],) if won else ())
    yield FamilyTables(tuple(map(Family, names, parents)), False, RULE)


@cache
def consortium_of(shape):
    """Return keys, data and the contract of a shape; equal in all worlds."""
    columns, chooses = SHAPES[shape]
    known = identities((*columns, DEALER, ANALYST))
    public = {name: identity.keys.public for name, identity in known.items()}
    contract = Contract(
        sites=tuple((site, public[site]) for site in columns),
        dealer=(DEALER, public[DEALER]),
        analyst=(ANALYST, public[ANALYST]),
        variables=tuple(name for names in columns.values() for name in names),
        learner="a simulation",
        options={"chooses": chooses},
        rule=RULE,
    )
    steps = choose_and_release if chooses else release_alone
    return known, data_of(columns), Approved(contract, "A. Owner", "2027-01-15", steps)


class Consortium:
    """Relay, dealer, sites and an analyst in a world, whose owners have approved a study."""

    def __init__(self, world, system, shape):
        self.world = world
        known, data, self.approved = consortium_of(shape)
        analysts = {ANALYST: known[ANALYST].keys.public}
        Relay(world)
        Dealer(world, DEALER, known[DEALER], tuple(data), analysts)
        self.sites = [
            Site(world, name, known[name], system, own, DEALER, analysts)
            for name, own in data.items()
        ]
        self.analyst = Analyst(world, ANALYST, known[ANALYST], system, (*data, DEALER))
        for site in self.sites:
            site.approved[self.approved.contract.digest] = self.approved
        for party in (*self.sites, world.parties[DEALER]):
            party.start()

    def learn(self):
        """Give the analyst's command; return the families and their tables."""
        return self.analyst.command(lambda process: process.learn(self.approved))


class Tagged:
    """A cipher that takes little time: it hides nothing, and opens under its own key alone."""

    def __init__(self, secret, header):
        self.key, self.header = secret, header

    def encrypt(self, _nonce, text, header):
        return bytes(text) + self._tag(text, header)

    def decrypt(self, _nonce, sealed, header):
        text, tag = sealed[: -seal.TAG_BYTES], sealed[-seal.TAG_BYTES :]
        if self._tag(text, header) != tag:
            raise InvalidTag
        return bytes(text)

    def _tag(self, text, header):
        code = blake2b(header, digest_size=seal.TAG_BYTES, key=self.key)
        code.update(text)
        return code.digest()


@contextmanager
def simulated(world):
    """Give a world its disks, its calendar and its secrets, in a block."""
    system = System(Path(mkdtemp(prefix="simulation-", dir=MEMORY)))
    world.root = system.root
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemRandomness, "bytes", lambda _, count: world.secret(count))
        patch.setattr(clock, "time_ns", world.time_ns)
        patch.setattr(seal, "_cipher", Tagged)
        try:
            with system.simulated(), oracle.watching(world):
                yield system
        finally:
            for disk in system.disks.values():  # the parties that live have files open
                disk.crash(power=False, draw=None)
            shutil.rmtree(system.root)


@cache
def undisturbed(shape):
    """Return what a run without faults gives, and how many points it has."""
    world = World("undisturbed")
    with simulated(world) as system:
        return Consortium(world, system, shape).learn(), world.points


def commands(consortium):
    """Give the command until it ends well, is refused again, or too often; return what came."""
    world, reasons = consortium.world, []
    for _ in range(MOST_COMMANDS):
        try:
            return "identical", consortium.learn()
        except Killed:
            reasons.append("killed")
        except QueryRefusedError as error:
            if reasons and reasons[-1] == str(error):
                return "refused", str(error)
            reasons.append(str(error))
        except (*NAMED, OSError, ValueError) as error:
            reasons.append(f"{type(error).__name__}: {error}")
        if consortium.analyst.results is not None:
            return "identical", consortium.analyst.results
        world.note(ANALYST, reasons[-1])
        world.pass_(WAIT)
    return "error", reasons[-1]


def run(seed, faults=None, trace=None):
    """Run one schedule; a `Failure` says what must not happen."""
    shape = OF_SEEDS[seed % len(OF_SEEDS)]
    expected, points = undisturbed(shape)
    world = World(seed, drawn(seed, points) if faults is None else faults, trace)
    with simulated(world) as system:
        consortium = Consortium(world, system, shape)
        kind, what = commands(consortium)
        world.pass_(WAIT)
        oracle.check(consortium, kind, what, expected)
    reason = "" if kind == "identical" else what
    return Outcome(kind, reason, dict(world.done), world.points, world.digest.hexdigest())
