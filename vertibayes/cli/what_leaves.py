"""What would leave a site by a study: the facts of `templates/approve.txt.j2`, which has the words.

The template reads the contract and the site's file; here is what they do not say themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import exp
from typing import Any, NamedTuple

from vertibayes.cli.earlier_studies import EarlierStudy
from vertibayes.cli.texts import look_alike, text
from vertibayes.contract import most_bits, most_steps, options_of_json, widest
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.approvals import Approval
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.queries.opening.needs import Need
from vertibayes_protocols.release import Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.changes import Difference
from vertibayes_protocols.storage.memory import SiteMemory

SHOWN = 8  # states of a variable that are named


def what_leaves(
    approval: Approval,
    own: SiteFile,
    memory: SiteMemory,
    data: SiteData | None = None,
    differences: Sequence[Difference] = (),
    earlier: Approval | None = None,
    studies: Sequence[EarlierStudy] = (),
    needs: Sequence[Need] = (),
) -> str:
    """Return what would leave a site, to whom and how often, as the site's owner reads it.

    `data` are the site's, and `differences` those from the data of earlier studies whose counts
    have left; `earlier` is an earlier approval of the same study, and `studies` are other ones;
    `needs` are what a run takes of the site's budgets. The text has the marks of
    `report.sheet.blocks`.
    """
    contract = approval.contract
    mine = own_variables(contract, own)
    parties = *contract.site_names, contract.dealer[0], contract.analyst[0]
    return text(
        "approve.txt.j2",
        contract=contract,
        approval=approval,
        earlier=earlier,
        needs=needs,
        memory=memory,
        noises=sorted(noises_of(contract)),
        alike=[
            *look_alike([*contract.variables, *own.variables]),
            *look_alike([*parties, *own.pinned]),
        ],
        own=own,
        analyst=contract.analyst[0],
        dealer=contract.dealer[0],
        others=[site for site in contract.site_names if site != own.party],
        mine=mine,
        theirs=[name for name in contract.variables if name not in mine],
        differences=differences,
        unused=[name for name in own.variables if name not in mine],
        **({"states": ()} if data is None else _facts(own, data, mine)),
        identifiers=() if data is None else data.report.identifiers(mine),
        studies=studies,
        **({} if contract.queries else _network(contract, own, {*mine}, data)),
        counts_of=_counts_of,
        predicted_from=predicted_from,
        words_of_rule=lambda content: Rule(**content).words,
    )


def own_variables(contract: Contract, own: SiteFile) -> list[str]:
    """Return the variables of a contract that a site offers."""
    return [name for name in contract.variables if name in own.variables]


def noises_of(contract: Contract) -> set[bool]:
    """Return whether what a study releases has noise: of its queries, some may have it."""
    if contract.rule is not None:
        return {contract.rule.is_noisy}
    found = set()
    for query in contract.queries:
        if query["kind"] in ("sums", "updates"):
            found.add(query["fields"]["terms"]["privacy"] is not None)
        elif query["kind"] in ("report", "publish", "predict", "scores", "consensus"):
            found.add(query["kind"] in ("report", "publish"))
    return found


def predicted_from(odds: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables from which a declared query predicts, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(odds["tables"])))


def _facts(own: SiteFile, data: SiteData, mine: Sequence[str]) -> dict[str, Any]:
    """Return the states of a site's variables, and which of them few people have."""
    few = [data.variables[name] for name in mine if name in data.variables]
    names = {variable.name: variable.states for variable in few}
    names |= {name: (f"numbers from {n.low:g} to {n.high:g}",) for name, n in data.numerics.items()}
    return {
        "states": [
            (name, len(names[name]), names[name][:SHOWN], len(names[name][SHOWN:]))
            for name in mine
            if name in names
        ],
        "rare": [f"{n}: {s}" for n, s, _ in data.few_people(mine, own.policy.fewest_records)],
    }


def _network(
    contract: Contract, own: SiteFile, mine: set[str], data: SiteData | None
) -> dict[str, Any]:
    """Return the facts of a Bayesian network; of what the study states, those of this site."""
    options, rule = options_of_json(contract.options["learning"]), contract.rule
    given = options.structure.families if options.structure is not None else ()
    others = {name: {f.child for f in given if name in f.parents} for name in contract.variables}
    most = max(len(contract.variables) - 1, 2)  # of two variables, one table has both anyway
    fewest = rule.fewest if rule is not None and rule.kind == "cut" else own.policy.fewest_records

    def few(members: tuple[str, ...]) -> int:
        if data is None:
            return 0
        names = [name for name in members if name in data.variables]
        return data.few(names, fewest) if names else 0

    return {
        "options": options,
        "widest": widest(contract),
        "bits": round(most_bits(contract)),
        "steps": most_steps(contract),
        "given": [(f.members, few(f.members)) for f in given if mine & {*f.members}],
        "fewest": fewest,
        # Another value is two steps: privacy of groups.
        "value_delta": 0 if rule is None else (1 + exp(min(rule.epsilon, 600))) * rule.delta,
        "hubs": [
            *(name for name, below in others.items() if len(below) >= most),
            *([options.class_variable] if options.by == "tan" else []),
        ],
        "required": [edge for edge in options.constraints.required if mine & {*edge}],
    }


class Counts(NamedTuple):
    """What a declared query counts."""

    tables: list[str]
    numbers: list[str]  # columns of which sums and sums of squares are asked


def _counts_of(schema: Mapping[str, Any]) -> Counts:
    """Return what is counted by a declared `Schema`, or by a `Declaration`."""
    columns: Iterable[str]
    if "statistics" in schema:
        families = chain.from_iterable(s.get("families", ()) for s in schema["statistics"])
        tables = [(family["child"], *family["parents"]) for family in families]
        columns = chain.from_iterable(s.get("columns", ()) for s in schema["statistics"])
    else:
        target = schema["target"]["name"]
        states = [name for name, feature in schema["features"] if "states" in feature]
        tables = [(target,), *((name, target) for name in states)]
        columns = (n for n, feature in schema["features"] if "states" not in feature)
    return Counts([*map(" x ".join, tables)], [*dict.fromkeys(columns)])
