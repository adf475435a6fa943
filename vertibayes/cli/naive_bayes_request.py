"""The options of ``vertibayes nb``, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from protocols.accounting import Privacy

CHOICES = {  # of each method: what --noise, the default first, --via and --protect may be
    "hdpnb": (("polya", "diluted", "none"), ("additive", "masked"), ("record", "party")),
    "vdpnb": (("laplace", "none"), ("additive", "product"), ("record",)),
}


@dataclass(frozen=True)
class Request:
    """The options of ``vertibayes nb``; each is a setting of `vertibayes.settings`."""

    method: str
    target: str
    parties: int
    epsilon: float | None = None
    noise: str | None = None
    accounting: str = "whole"
    protect: str = "record"
    delta: float = 1e-5
    gamma: float = 1.0
    via: str = "additive"
    alpha: float = 1.0
    test: Path | None = None
    holdout: float | None = None

    def checked(self) -> Request:
        """Return the request with its noise filled in; refuse what cannot be.

        Raises
        ------
        ValueError
            It names the option.
        """
        noises, ways, protected = CHOICES[self.method]
        noise = self.noise or noises[0]
        given = [("noise", noise, noises), ("via", self.via, ways)]
        given += [("protect", self.protect, protected)]
        for option, value, known in given:
            if value not in known:
                expected = " or ".join(known)
                raise ValueError(f"--{option} {value}: {self.method} has {expected}")
        self._check_noise(noise)
        if self.test is not None and self.holdout is not None:
            raise ValueError("--test and --holdout both say what to test on: give one of them")
        return replace(self, noise=noise)

    def privacy(self) -> Privacy | None:
        """Return the noise of hdpnb; None for exact sums."""
        if self.epsilon is None:
            return None
        return Privacy(
            eps=self.epsilon,
            accounting=self.accounting,
            protects=self.protect,
            noise=self.noise or "polya",
            delta=self.delta,
            gamma=self.gamma,
        )

    def _check_noise(self, noise: str) -> None:
        if self.method == "vdpnb" and (self.delta, self.gamma) != (Request.delta, Request.gamma):
            raise ValueError(
                "--delta and --gamma are hdpnb's: a site of vdpnb adds its noise alone"
            )
        of_noise = "delta", "gamma", "protect", "accounting"
        idle = [name for name in of_noise if getattr(self, name) != getattr(Request, name)]
        if noise == "none" and idle:
            raise ValueError(f"--{idle[0]} is of the noise, and --noise none has none")
        if (noise == "none") != (self.epsilon is None):
            raise ValueError("specify --epsilon E, or --noise none, and not both")
        if noise in ("laplace", "diluted") and find_spec("opendp") is None:
            raise ValueError(f"--noise {noise} is drawn by OpenDP: pip install 'vertibayes[noise]'")
