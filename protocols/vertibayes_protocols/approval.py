"""Approved studies: what a site's owner has agreed to, step by step.

A study's steps follow from its contract and from the winners of its choices. A site that knows both
derives each step itself, and answers no query that is not the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from vertibayes_mpc.rounds import Message, Party
from vertibayes_protocols import clock
from vertibayes_protocols.choices import Choices
from vertibayes_protocols.errors import printable
from vertibayes_protocols.release import FamilyTables
from vertibayes_protocols.variables import Family
from vertibayes_protocols.wire import FREE

if TYPE_CHECKING:  # learners need the steps alone
    from vertibayes_protocols.calibration.nodes import Checkpoints
    from vertibayes_protocols.contract import Contract
    from vertibayes_protocols.study import Study

R = TypeVar("R")
Step: TypeAlias = Choices | FamilyTables
Winners: TypeAlias = tuple[int, ...]  # of each set, the place of the winner; none of a release
Steps: TypeAlias = Generator[Step, Winners, R]  # a learner, as it asks
StepsOf: TypeAlias = Callable[["Study"], Steps[object]]


class Takes(NamedTuple):
    """What is known of a run's steps before it begins."""

    bits: int = 0  # of the winners of all its choices, at most
    families: tuple[Family, ...] = ()  # of the released tables, with the parents that are given


@dataclass(frozen=True)
class ContractSteps:
    """The steps of a contract, in a study that the sites have committed, and what they take."""

    of: StepsOf = field(repr=False)
    takes: Takes

    def __call__(self, study: Study) -> Steps[object]:
        """Return the steps in a study."""
        return self.of(study)


Phase: TypeAlias = Literal["begin", "opening", "answer"]


class UnusableApprovalError(ValueError):
    """A study has no approval that a run can use; the text, of the study, is for its analyst."""


class Consent(NamedTuple):
    """A second person's consent to an approval."""

    by: str
    date: str
    signature: bytes = b""  # of `deployment.approvals.consented`


@dataclass(frozen=True)
class Approved:
    """A contract that a site's owner has approved."""

    contract: Contract
    # Who approved it, and when.
    approver: str
    date: str
    steps: StepsOf | None = field(compare=False, repr=False)
    data: bytes = b""  # of `Changes.beside`, if its owner approved the data beside earlier ones
    purpose: str = ""
    until: str = ""  # the last day, in UTC; no end if empty
    version: str = ""  # of the data that the owner has seen approved: `SiteData.version`
    permit: str = ""  # the number of an ethics committee's file, or of a data permit
    second: Consent | None = None  # of whom the site's policy names
    takes: Takes = field(default=Takes(), compare=False, repr=False)

    @property
    def words(self) -> str:
        """Who approved it, when, until when, what for and under which permit."""
        second = f" and {printable(self.second.by)} on {self.second.date}" if self.second else ""
        until = f" until {self.until}" if self.until else ""
        purpose = f" for {printable(self.purpose)}" if self.purpose else ""
        permit = f" under permit {printable(self.permit)}" if self.permit else ""
        return f"{self.approver} on {self.date}{second}{until}{purpose}{permit}"

    @property
    def is_over(self) -> bool:
        """Whether its last day is past."""
        return bool(self.until) and today() > self.until

    @property
    def counts_leave(self) -> bool:
        """Whether tables leave without noise."""
        rule = self.contract.rule
        return rule is not None and not rule.is_noisy

    @property
    def is_compared(self) -> bool:
        """Whether values must be those of earlier studies: noise hides people in tables alone."""
        return self.counts_leave or self.takes.bits > 0


Approvals: TypeAlias = Callable[[bytes], Approved | None]  # by digest


def today() -> str:
    """Return the day, in UTC, as in an approval: 2026-01-31."""
    return clock.now().date().isoformat()


def nothing_approved(digest: bytes) -> None:
    """Return no approval: of a site that answers free queries alone."""
    del digest


def is_valid(approved: Approved, approvals: Approvals) -> bool:
    """Whether an approval is still there as it was; one that cannot be read is not."""
    try:
        return approvals(approved.contract.digest) == approved
    except (OSError, ValueError):
        return False


class Use(NamedTuple):
    """Whether a query begins another run of an approved study, and whether it uses one up."""

    begins: bool
    ends: bool


@dataclass(frozen=True, slots=True)
class Asked(Message):
    """What an analyst asks of `parties`, as the run of a study sees it, whatever its kind.

    The class attribute `phase` says whether it begins the run of an approved study, opens a study,
    or answers something of it.
    """

    phase: ClassVar[Phase] = "answer"
    parties: tuple[str, ...] = field(metadata=FREE)

    def matches(self, contract: Contract) -> None:
        """Refuse, with a ValueError, what free fields have and an approved contract has not."""

    @property
    def claims(self) -> bytes:
        """The study that it asks to run: a contract's digest or an id; empty if none."""
        return b""

    @property
    def step(self) -> Step | None:
        """The step of an approved study that it asks for, if it is one."""
        return None

    def uses_run(self, party: Party, checkpoints: Checkpoints) -> Use | None:
        """Note that a site begins it, and return what it uses up of a study that declares it.

        None if the first answer of a session begins a run, and uses it up.
        """
        del party, checkpoints
        return None

    @property
    def gives_again(self) -> bool:
        """Whether it asks for the answer to an earlier step again, which was lost."""
        return False


class Run(Protocol):
    """A run of an approved study at a site: which query it answers next."""

    approved: Approved

    def check(self, query: Asked) -> None:
        """Refuse a query that is not the next one."""
        ...

    def begin(self, query: Asked) -> None:
        """Note on disk what a query uses up, before it is answered."""
        ...

    def end(self, query: Asked) -> None:
        """Advance: a query has been answered."""
        ...
