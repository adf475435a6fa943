"""What a party has joined: the public commitments of a study, and the mark of all its sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vertibayes_mpc.commitments import MOST_INDICATORS, Commitments, Operand
from vertibayes_mpc.errors import MalformedMessageError, UnknownFaultyPartyError
from vertibayes_mpc.labelled import LABEL_BYTES
from vertibayes_mpc.randomness import label
from vertibayes_mpc.ring import Ring
from vertibayes_mpc.rounds import Message, Party
from vertibayes_protocols.study import Study


@dataclass(frozen=True, slots=True)
class Committed(Message):
    """A site has joined the study: what the others commit, it holds."""

    kind: ClassVar[str] = "committed"
    # A hash of the study and the common seed: a site that has forgotten a study would draw other
    # records for the same choice of rows.
    mark: bytes


def mark_of(committed: Mapping[Party, Committed]) -> bytes:
    """Return the mark that all sites have sent, or refuse different marks."""
    marks = {site: message.mark for site, message in committed.items()}
    first, mark = next(iter(marks.items()))
    for site, other in marks.items():
        if len(other) != LABEL_BYTES:
            raise MalformedMessageError(site, f"its mark has {len(other)} bytes, not {LABEL_BYTES}")
        if other != mark:
            raise UnknownFaultyPartyError(marks, f"{site} has joined another study than {first}")
    return mark


def commitments_of(study: Study, ids: dict[str, list[bytes]], seed: bytes) -> Commitments:
    """Return the public commitments; the seed, by which records are chosen, is in all labels."""
    operands = [
        Operand(
            label("id", name, len(variable.states), *variable.states, *ids[name]),
            variable.codes - 1,
            study.holders[name],
            variable.missing,
            study.most_indicators,
        )
        for name, variable in study.variables.items()
    ]
    ring = Ring.holding(study.records)
    wider = () if study.most_indicators == MOST_INDICATORS else (study.most_indicators,)
    aligned = (study.alignment,) if study.alignment else ()
    way = () if study.is_masked else (study.count_by,)
    name = label("study", study.id, seed, *wider, *aligned, *way)
    return Commitments(name, ring, study.records, tuple(operands), study.dealer, study.block_rows)
