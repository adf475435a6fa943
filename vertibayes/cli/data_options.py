"""Options of how data are read, which commands share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

SEVERAL = (
    "--exclude",
    "--missing-codes",
    "--categorical",
    "--ignore-case",
    "--cut",
)  # options that take several values in a row

Exclude = Annotated[list[str] | None, typer.Option(help="Columns to leave out: several in a row.")]
MissingCodes = Annotated[
    list[str] | None,
    typer.Option(
        help="What says missing, beside the empty field: several in a row; COLUMN=CODE in one "
        "column."
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="Columns whose texts are names, numbers and dates too: never binned."),
]
IgnoreCase = Annotated[
    list[str] | None,
    typer.Option(help="Columns in which 'yes' and 'YES' are one state: several in a row."),
]
Cut = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=EDGE,EDGE",
        help="Bins of a numeric column, as age=18,65: up to 18, up to 65, above. Several in a row.",
    ),
]
Binning = Annotated[
    str, typer.Option(help="How other numeric columns are cut: equal-frequency or equal-width.")
]


def _check_bins(share: float) -> float:
    if not 0 < share <= 0.5:
        raise ValueError(
            f"--bins must be above 0 and at most 0.5 of the records, got {share:g}; --bins 0.1 "
            "gives ten bins"
        )
    return share


Bins = Annotated[
    float,
    typer.Option(
        callback=_check_bins,
        help="Share of the records in a bin, at most 0.5: 0.1 gives ten bins; of equal width: of "
        "the range.",
    ),
]
MaxStates = Annotated[
    int, typer.Option(help="Most states of a variable; columns with more are left out.")
]
KeepSpaces = Annotated[
    bool, typer.Option("--keep-spaces", help="Keep spaces around values and column names.")
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse data with columns that would be left out, naming all."),
]


def several_values(arguments: Sequence[str]) -> list[str]:
    """Repeat an option before each of its values: ``-x A B`` as ``-x A -x B``, for `SEVERAL`."""
    expanded: list[str] = []
    option = None
    for argument in arguments:
        is_option = argument.startswith("-") and not re.fullmatch(r"-(\d.*)?", argument)
        if option is not None and not is_option and expanded[-1] != option:
            expanded.append(option)
        if is_option:
            option = argument if argument in SEVERAL else None
        expanded.append(argument)
    return expanded
