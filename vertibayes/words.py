"""Numbers in words for messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "table"), counted(2, "table")
    ('1 table', '2 tables')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def percent(share: float) -> str:
    """Return a share in percent; a positive share is not rounded to zero."""
    return "under 0.1%" if 0 < share < 0.001 else f"{share:.1%}"


def size(count: int) -> str:
    """Return a number of bytes in kB (1,000 bytes) or MB (1,000,000 bytes)."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def area_of(auc: float | None, interval: Sequence[float] | None) -> str:
    """Return an area under a ROC curve, with its interval over folds if it has one."""
    if auc is None:
        return "no AUC"
    if interval is None:
        return f"AUC {auc:.3f}"
    return f"AUC {auc:.3f} (95 % interval over the folds {interval[0]:.3f} to {interval[1]:.3f})"
