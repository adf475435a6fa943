"""What is checked of an alignment: rules, sizes, limits, and what sites have kept."""

from __future__ import annotations

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.errors import QueryRefusedError, RecordsDifferError, refusing
from vertibayes_protocols.roles import SiteRole
from vertibayes_protocols.site.identifiers import Identifiers
from vertibayes_protocols.storage.alignments import KeptAlignment
from vertibayes_protocols.storage.meet_counts import ALIGNMENTS

COMPARE = (
    'compare the rules and the columns: "1" and "01" are different people under the rule exact. '
    "The log of each site, and `vertibayes check site.toml`, say what its column has, and which "
    "rule fits it"
)
ROWS = (
    "if some sites hold rows of one variable of different people, [alignment] of the study must "
    "name the sites that hold everybody (everyone)"
)


def own_list(site: SiteRole) -> Identifiers:
    """Return the identifiers of all people of a site, also during a session that has aligned."""
    if site.everybody.identifiers is None:
        raise ValueError(
            "it aligns its list of people with nobody: its owner can add [alignment] to site.toml"
        )
    return site.everybody.identifiers


def check_rules(site: SiteRole, alignment: Alignment, own: Identifiers) -> None:
    """Refuse other rules, a level that tells too much, and studies of too few people."""
    if alignment.rules != own.rules:
        theirs, ours = ", ".join(alignment.rules), ", ".join(own.rules)
        raise ValueError(f"the rules of the identifiers are {theirs} in the study, and {ours} here")
    if alignment.level < site.limits.least_level:
        raise ValueError(
            f"at level {alignment.level} of an alignment sites learn who is in the study; here "
            f"least_level = {site.limits.least_level}"
        )
    if alignment.fewest < (fewest := site.policy.fewest_records):
        raise ValueError(
            f"the study may have as few as {alignment.fewest} people; the policy here requires "
            f"fewest_records = {fewest}: set fewest in [alignment]"
        )


def check_sizes(site: SiteRole, alignment: Alignment, own: Identifiers) -> None:
    """Refuse lists too long to be plausible or padded, and a size below one's own."""
    size, plan = alignment.size, alignment.plan(b"", "")
    if len(own) > size[site.party]:
        reason = (
            f"its list of people is longer than its public size, {size[site.party]}: the analyst "
            f"can raise the size of {site.party} in [alignment] of the study"
        )
        raise QueryRefusedError(site.party, reason, f"it has {len(own)} people")
    if site.party in plan.exact and len(own) != size[site.party]:
        reason = f"its list must have exactly its public size, {size[site.party]}, in this study"
        raise QueryRefusedError(site.party, reason, f"it has {len(own)} people")
    if size[site.party] > (most := site.limits.most_of(site.party, len(own))):
        reason = (
            f"its own list would be padded to {size[site.party]} people, which takes too much: its "
            f"owner can set most_people of {site.party} in site.toml"
        )
        raise QueryRefusedError(site.party, reason, f"most_people of {site.party} is {most}")
    for peer in alignment.sites:
        if peer != site.party and size[peer] > (most := site.limits.most_of(peer, len(own))):
            reason = (
                f"the list of {peer} may have {size[peer]} people, which is more than is plausible "
                f"here: its owner can set most_people of {peer} in site.toml"
            )
            raise QueryRefusedError(site.party, reason, f"most_people of {peer} is {most}")


def kept_alignment(
    site: SiteRole, study: bytes, alignment: Alignment, own: Identifiers
) -> KeptAlignment | None:
    """Return what a site has kept of the alignment of a study, or refuse what differs from it."""
    with refusing(site.party):
        kept = site.memory.aligned.of(study)
    if kept is None:
        return None
    another = 'begin a new study, in another folder ([study] folder = "study2" in study.toml)'
    if kept.people != site.memory.people_digest(own):
        reason = f"the list of people changed since the study was aligned: {another}"
        raise QueryRefusedError(site.party, reason)
    if kept.alignment != alignment.digest:
        reason = f"the study was aligned with other sites or rules: {another}"
        raise QueryRefusedError(site.party, reason)
    return kept


def check_spent(site: SiteRole) -> None:
    """Refuse one alignment too many, after those that the owner has forgiven."""
    with refusing(site.party):
        is_forgiven = site.memory.meets.forgive(ALIGNMENTS)
    if is_forgiven:
        site.ledger.note("the owner has allowed further alignments", site.party, ())
    if site.memory.alignments >= (most := site.limits.most_alignments):
        reason = (
            f"its list of people was aligned as often as most_alignments = {most} allows: its "
            "owner can allow further ones with `vertibayes meets site.toml --alignments`"
        )
        raise QueryRefusedError(site.party, reason)


def check_all_kept(alignment: Alignment, kept: list[Party]) -> None:
    """Refuse, at the analyst, to continue a study whose alignment some sites have not kept."""
    forgot = [site for site in alignment.sites if site not in kept]
    if forgot:
        raise RecordsDifferError(
            f"{', '.join(kept)} kept the alignment of this study, and {', '.join(forgot)} did not: "
            f"have {', '.join(forgot)} restore the newest memory and ledger; with an older backup, "
            'begin a new study, in another folder ([study] folder = "study2" in study.toml)'
        )


def too_few(alignment: Alignment, people: int) -> str:
    """Return a message that too few people are in common, and what to compare."""
    sizes = ", ".join(f"{site} {size}" for site, size in alignment.sizes)
    needed = f"at least {alignment.fewest} are needed"
    rows = f"; {ROWS}" if alignment.is_common and len(alignment.sites) > 2 and not people else ""
    return f"{people} people are in common of the lists ({sizes}), and {needed}: {COMPARE}{rows}"
