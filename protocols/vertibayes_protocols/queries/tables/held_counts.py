"""Look counts up that some sites hold: several by `vertibayes_mpc.lookups`, one alone by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from vertibayes_mpc.commitments import Holder
from vertibayes_mpc.lookups import LookupPlan, look_up
from vertibayes_mpc.ring import Elements
from vertibayes_mpc.rounds import Party, Program

Holders: TypeAlias = tuple[Party, ...]  # of a table, sorted


def look_up_held(
    site: Holder,
    plan: LookupPlan,
    counts: Mapping[Holders, Elements],
    known: Callable[[Elements], Elements],
) -> Program[dict[Holders, Elements]]:
    """Return a site's shares of a function of counts, by the holders of the counts."""
    batches = {at: b.holders for at, b in enumerate(plan.batches) if b.holders in counts}
    shared = {at: counts[holders] for at, holders in batches.items()}
    looked_up = (yield from look_up(site, plan, shared)) if shared else {}
    values = {batches[at]: of_counts for at, of_counts in looked_up.items()}
    alone = (site.party,)
    if alone in counts:
        values[alone] = known(counts[alone])
    return values
