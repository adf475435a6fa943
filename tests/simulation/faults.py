"""The faults of a schedule: what strikes, at which point, at whom."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

CLOCK_STEPS = 3600.0, -3600.0, 86400.0, -90.0, 40_000_000.0
SECONDS = 0.5, 3.0, 8.0, 70.0
KINDS = (
    "kill", "stop", "power", "torn", "freeze", "lose", "silent loss", "no receipt", "duplicate",
    "slow", "relay", "full", "clock", "backup",
)  # fmt: skip
RARE = "backup", "silent loss", "duplicate"  # most of which end a run, so that no other is tried
WEIGHTS = [1 if kind in RARE else 3 for kind in KINDS]


class Fault(NamedTuple):
    """A fault that strikes at a point: the process there, or a party that is drawn."""

    point: int
    kind: str
    is_here: bool
    draw: float  # between 0 and 1: which party, how long

    def strike(self, world, process):
        """Strike."""
        names = sorted(world.parties)
        names.remove("relay")
        party = process.party if self.is_here else world.parties[names[int(self.draw * len(names))]]
        seconds = SECONDS[int(self.draw * 997) % len(SECONDS)]
        world.note(party.name, f"FAULT {self.kind} {seconds:g} s")
        getattr(self, "_" + self.kind.replace(" ", "_"))(world, party, seconds)

    def _kill(self, world, party, seconds):
        party.crash(away=seconds)

    def _stop(self, world, party, seconds):
        world.after(0.0, lambda: party.stop(seconds))  # a signal is handled between two turns

    def _power(self, world, party, seconds):
        party.crash(power=True, away=seconds)

    def _torn(self, world, party, seconds):
        """Lose the power in the middle of the next write."""
        if hasattr(party, "disk"):
            party.disk.torn = self.draw

    def _freeze(self, world, party, seconds):
        if party.process is not None:
            party.process.frozen = world.time + seconds

    def _next(self, party, kind):
        if party.process is not None:
            party.process.next_packet = kind

    def _lose(self, world, party, seconds):
        self._next(party, "lose")

    def _silent_loss(self, world, party, seconds):
        self._next(party, "silent loss")

    def _no_receipt(self, world, party, seconds):
        self._next(party, "no receipt")

    def _duplicate(self, world, party, seconds):
        self._next(party, "duplicate")

    def _slow(self, world, party, seconds):
        """Slow the party's next packets down, one on each link: links are then out of step."""
        for lane in party.process.link.lanes.values() if party.process is not None else ():
            lane.extra = seconds

    def _relay(self, world, party, seconds):
        world.parties["relay"].down = world.time + seconds

    def _full(self, world, party, seconds):
        if hasattr(party, "disk"):
            party.disk.full = world.time + seconds

    def _clock(self, world, party, seconds):
        party.offset += CLOCK_STEPS[int(self.draw * 991) % len(CLOCK_STEPS)]

    def _backup(self, world, party, seconds):
        """Restore an older backup of the party's folder, or an empty one."""
        if hasattr(party, "disk"):
            party.crash(away=seconds)
            backups = [{}, *party.disk.backups]
            party.disk.restore(backups[int(self.draw * len(backups))])
            party.went_back = True


def drawn(seed, points):
    """Return the faults of a schedule: none to four, within the points of an undisturbed run."""
    draw = Random(f"faults {seed}")
    return [
        Fault(
            draw.randint(1, points),
            draw.choices(KINDS, WEIGHTS)[0],
            draw.random() < 0.6,
            draw.random(),
        )
        for _ in range(draw.choice((0, 1, 1, 1, 1, 1, 2, 2, 3, 4)))
    ]
