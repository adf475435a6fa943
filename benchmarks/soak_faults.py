"""What goes wrong in the soak: kills, stops, full disks, clock steps, losses at the relay."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep, time

import numpy as np
from soak_parties import Party

CLOCK_STEPS = (3600, -3600, 86400, 90, -90)


@dataclass
class Fault:
    """One thing that went wrong: what, at which party, from when until when."""

    what: str
    party: str
    begin: float
    end: float = 0.0


@dataclass
class Faults:
    """Draws faults and carries them out, one after the other.

    Parameters
    ----------
    parties : dict of str to Party
        Sites, dealer, relay and analysts.
    disks : dict of str to Path
        The folders of the sites that are small file systems of their own.
    proxies : dict of str to Proxy
        Between each party and the relay.
    seed : int
    """

    parties: dict[str, Party]
    disks: dict[str, Path]
    proxies: dict
    seed: int
    done: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = np.random.default_rng(self.seed)
        kinds = [self.kill, self.kill, self.stop, self.stop, self.loss, self.loss, self.silence]
        steps = any(party.clock for party in self.parties.values())
        self.kinds = [*kinds, *([self.clock] * steps), *([self.full_disk] * bool(self.disks))]

    def strike(self) -> Fault:
        """Carry out the next fault."""
        kind = self.kinds[int(self.draw.integers(len(self.kinds)))]
        fault = kind()
        fault.end = time()
        self.done.append(fault)
        return fault

    def _one_of(self, names) -> str:
        names = sorted(names)
        return names[int(self.draw.integers(len(names)))]

    def kill(self) -> Fault:
        """Kill a party, which its service starts again."""
        party = self._one_of(self.parties)
        fault = Fault("kill", party, time())
        self.parties[party].signal(signal.SIGKILL)
        sleep(self.draw.uniform(0.2, 2.0))
        self.parties[party].keep()
        return fault

    def stop(self) -> Fault:
        """Stop a process for some seconds: a machine that is suspended."""
        party = self._one_of(self.parties)
        fault = Fault("stop", party, time())
        self.parties[party].signal(signal.SIGSTOP)
        sleep(self.draw.choice([1.0, 4.0, 14.0]))
        self.parties[party].signal(signal.SIGCONT)
        return fault

    def loss(self) -> Fault:
        """Cut all connections of a party to the relay."""
        party = self._one_of(self.proxies)
        fault = Fault("loss", party, time())
        self.proxies[party].cut()
        return fault

    def silence(self) -> Fault:
        """Swallow all bytes of a party's connections, without closing them."""
        party = self._one_of(self.proxies)
        fault = Fault("silence", party, time())
        self.proxies[party].swallow()
        sleep(2.0)
        return fault

    def clock(self) -> Fault:
        """Step a party's clock."""
        party = self._one_of(name for name, party in self.parties.items() if party.clock)
        fault = Fault("clock", party, time())
        self.parties[party].clock.write_text(f"{self.draw.choice(CLOCK_STEPS)}\n")
        sleep(3.0)
        self.parties[party].clock.write_text("0\n")
        return fault

    def full_disk(self) -> Fault:
        """Fill the disk of a site for some seconds."""
        party = self._one_of(self.disks)
        fault, ballast = Fault("full disk", party, time()), self.disks[party] / "ballast"
        try:
            with ballast.open("wb") as file:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
        except OSError:
            pass
        sleep(self.draw.uniform(1.0, 4.0))
        ballast.unlink()
        return fault


def small_disk(folder: Path, size: str = "64m") -> bool:
    """Make a folder a file system of its own, if that is allowed; keep its files."""
    if os.getuid() != 0:
        return False
    beside = folder.with_name(folder.name + ".files")
    folder.rename(beside)
    folder.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True
    )
    subprocess.run(["cp", "-a", f"{beside}/.", folder], check=True)
    return mounted.returncode == 0
