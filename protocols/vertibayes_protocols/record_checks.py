"""The numbers and record sets of queries: what a site refuses, and what it remembers of an answer.

Tables over two record sets that differ by a few people show what these people have, and a mask or
key that is used twice shows more. A check refuses with a ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from vertibayes_mpc.commitments import Selection
from vertibayes_protocols import clock
from vertibayes_protocols.effects import ByRule, Effects, Number
from vertibayes_protocols.errors import refusing
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.storage.changes import Snapshot
from vertibayes_protocols.storage.memory import Digests
from vertibayes_protocols.study import Study
from vertibayes_protocols.variables import Rows

RARE = (
    "fewer than {fewest} people have a state of one of its columns, and the rule cut does not hide "
    "what they have: its owner can merge the state with another; or the study can have the rule "
    "rounded, or noise"
)
CLOCKS = 3_600_000_000  # microseconds: how far clocks may differ


def check_number(site: SiteRole, number: Number | None) -> None:
    """Refuse a number that was used, may have been used, or would leave none to be used.

    Numbers of sums are the analyst's time, and each analyst has numbers of its own: its public key
    is in the digest that all labels of a sum have. A site that has lost its memory knows no number:
    those before it was started may be those of sums whose keys it would use again.
    """
    if number is None:
        return
    value, memory, now, reason = number.value, site.memory, clock.time_ns() // 1000, ""
    if not number.analyst:
        assert site.joined is not None  # the plan has found it
        last = site.joined.asked if site.holder is None else site.holder.last
        if value <= last:
            reason = (
                f"the number of the query must be above {last}, got {value}: masks are used once"
            )
    elif not site.analyst_key:
        reason = f"no public key of {site.analyst} is pinned here"
    elif number.analyst != site.analyst_key:
        reason = f"the query has another public key than the one pinned here for {site.analyst}"
    elif value <= (last := max(memory.last_sum(number.analyst), memory.began - CLOCKS)):
        reason = f"sum number {value} does not come after {last}: keys are used once"
    elif value > now + CLOCKS:
        reason = f"sum number {value} is a time in the future: no later sum could come after it"
    if reason:
        raise ValueError(reason)


def check_records(site: SiteRole, rows: Rows) -> None:
    """Refuse records that would be singled out."""
    assert site.joined is not None  # the plan has found it
    if rows not in site.joined.answered:
        records = _records(site, site.joined.selection(rows))
        _check_size(site, site.joined.study.id, len(records))
        _check_set(site, records)


def check_values(site: SiteRole, effects: Effects) -> None:
    """Refuse values that differ from those of an earlier study by a few people.

    Noise hides a few people in tables; the owner of the site may approve the others.
    """
    leaves, joined, changes = effects.leaves, site.joined, site.memory.changes
    assert joined is not None  # the plan has found it
    is_release = isinstance(leaves, ByRule)
    if is_release and effects.noise is not None:
        return
    is_compared = joined.compared is changes.snapshots  # and no other session has answered since
    if is_compared and not is_release:
        return
    compare_values(site, joined.study, is_release=is_release)
    joined.compared = changes.snapshots


def compare_values(site: SiteRole, study: Study, *, is_release: bool = False) -> None:
    """Refuse values of which few differ from an earlier study, or any if counts leave."""
    values, approved = site.values_of(study), site.approved_beside
    _check_few(site, values, site.policy.fewest_records, approved)
    if is_release or (site.run is not None and site.run.approved.counts_leave):
        _check_counts(site, values, approved)  # before the first step, and at the release


def remember_columns(site: SiteRole, study: Study) -> None:
    """Remember columns before the site commits them, unless it refuses exact results of them.

    The study can then continue with the earlier data, until a result with noise is answered
    (`remember_records`). Of an approved study, whose next queries are known, such columns are
    refused before.
    """
    if site.run is None:
        try:
            compare_values(site, study)
        except ValueError:
            return
    _commit(site, study)


def _commit(site: SiteRole, study: Study) -> None:
    site.memory.commit(study.id, {name: site.column(name) for name in site.own(study)})


def _check_few(site: SiteRole, values: Snapshot, fewest: int, approved: Collection[bytes]) -> None:
    """Refuse values, or a list of people, of which a few changed."""
    site.memory.changes.check(values, fewest, approved)
    if site.hidden is not None:
        site.memory.changes.check_people(values.people, fewest, approved)


def _check_counts(site: SiteRole, values: Snapshot, approved: Collection[bytes]) -> None:
    """Refuse counts, without noise, of data that differ from those of an earlier study."""
    if site.policy.fewest_records > 1:
        site.memory.changes.check_counts(values, approved)
        if site.hidden is not None:
            site.memory.changes.check_people(values.people, math.inf, approved)


def _check_size(site: SiteRole, study: bytes, records: int) -> None:
    """Refuse a record set that has nearly as many people as another, if one's are unknown."""
    fewest = site.policy.fewest_records
    few = f"fewer than {fewest} records more or less than those of an earlier"
    differ = "tables of both could differ by them"
    if site.memory.is_near_hidden(study, records, fewest):
        raise ValueError(f"{few} study whose people no site knows: {differ}")
    if site.hidden is not None and site.memory.is_near_known(site.hidden.records, fewest):
        raise ValueError(f"{few} record set, in a study whose people no site knows: {differ}")


def _check_set(site: SiteRole, records: Digests) -> None:
    """Refuse one record set too many, or one that singles out records with the earlier sets.

    Only the site's own records count. A site that holds none of the chosen records answers: the
    query counts none of its people.
    """
    if records in site.memory.sets or (site.placement is not None and not len(records)):
        return
    if len(site.memory.sets) >= site.policy.most_row_sets:
        reason = f"it has answered for {site.policy.most_row_sets} record sets, no more are allowed"
        raise ValueError(reason)
    if site.memory.sets.smallest_atom(records) < site.policy.fewest_records:
        reason = (
            "together with the earlier record sets, these records would single out fewer than "
            f"{site.policy.fewest_records}"
        )
        raise ValueError(reason)


def remember_records(site: SiteRole, rows: Rows) -> None:
    """Remember a record set, and the study's columns and values, before the site answers."""
    assert site.joined is not None  # considered
    if rows not in site.joined.answered:
        _commit(site, site.joined.study)  # noise may answer for columns that were not remembered
        records = _records(site, site.joined.selection(rows))
        values, variables = site.values_of(site.joined.study), site.data.variables.values()
        site.memory.keep_values(values, variables)
        if site.hidden is None:
            site.memory.note_size(len(records))
        else:
            site.memory.hide(site.joined.study.id, site.hidden.records)
        site.memory.answer(site.data, records)
        site.joined.answered.add(rows)


def _records(site: SiteRole, selection: Selection) -> Digests:
    """Return the digests of the chosen records that the site holds."""
    with refusing(site.party):
        return site.digests_of(selection.indices)
