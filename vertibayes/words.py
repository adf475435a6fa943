"""Numbers in words for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "table"), counted(2, "table")
    ('1 table', '2 tables')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def offered(name: str, known: Iterable[str]) -> str:
    """Return the names that there are, and which of them an unknown name was meant to be.

    Examples
    --------
    >>> offered("Smok", ["age", "smoke"])
    'age, smoke; did you mean smoke?'
    """
    names = list(known)
    lower = {one.lower(): one for one in names}
    alike = [lower[one] for one in get_close_matches(name.lower(), lower, n=1)]
    return "; ".join([", ".join(names), *(f"did you mean {one}?" for one in alike)])


def percent(share: float) -> str:
    """Return a share in percent; a positive share is not rounded to zero."""
    return "under 0.1%" if 0 < share < 0.001 else f"{share:.1%}"


def size(count: int) -> str:
    """Return a number of bytes in kB (1,000 bytes), MB (1,000 kB) or GB (1,000 MB)."""
    unit, name = (1e9, "GB") if count >= 1e9 else (1e6, "MB") if count >= 1e6 else (1e3, "kB")
    return f"{count / unit:.1f} {name}"


def duration(seconds: float) -> str:
    """Return seconds as such if they are under 100, and otherwise about how many minutes."""
    return f"{seconds:.1f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


def area_of(
    auc: float | None, interval: Sequence[float] | None, over: str = " over the folds"
) -> str:
    """Return an area under a ROC curve, with its interval if it has one."""
    if auc is None:
        return "no AUC"
    if interval is None:
        return f"AUC {auc:.3f}"
    return f"AUC {auc:.3f} (95 % interval{over} {interval[0]:.3f} to {interval[1]:.3f})"
