"""What would leave a site by a study, to whom and how often, in words for the site's owner."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from vertibayes.contract import most_bits, most_steps, options_of_json, widest
from vertibayes.words import counted
from vertibayes_protocols.accounting import Privacy
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.release import Rule
from vertibayes_protocols.roles import Party

_MOVES = "which edge to add, remove or reverse, step by step, at most {most} to a variable"
COMPARED = {  # by algorithm: what the winners say
    "hybrid": (
        "which pairs of variables are independent given a few others; which parents, at most "
        "{most}, and which order of the variables fit best; which edges to add, remove or reverse"
    ),
    "hill_climbing": _MOVES,
    "tabu": _MOVES,
    "pc": (
        "which pairs of variables are independent given a few others; of more parents than {most}, "
        "which fit best"
    ),
    "chow_liu": "which pairs of variables depend most on each other, one edge to a variable",
    "tan": "which pairs of variables depend most on each other, given {given}",
    "exact": "which parents, at most {most}, fit each variable best",
    "k2": "which parents, at most {most} and before it in the order, predict each variable best",
}


def own_variables(contract: Contract, own: SiteFile) -> list[str]:
    """Return the variables of a contract that a site offers."""
    return [name for name in contract.variables if name in own.variables]


def what_leaves(contract: Contract, own: SiteFile) -> Iterator[str]:
    """Yield, line by line, what would leave a site, and to whom."""
    mine = own_variables(contract, own)
    analyst, others = contract.analyst[0], [s for s in contract.site_names if s != own.party]
    runs = "once" if contract.runs == 1 else f"{contract.runs} times"
    yield f"Study of {analyst} with {', '.join(contract.site_names)}; dealer: {contract.dealer[0]}"
    yield f"Digest: {grouped_digest(contract.digest)}"
    yield f"Compare it with {analyst} by telephone: `vertibayes check study.toml` prints it there."
    yield ""
    yield f"Of this site, {own.party}: {', '.join(mine)}"
    if unused := [name for name in own.variables if name not in mine]:
        yield f"  not used: {', '.join(unused)}"
    if theirs := [name for name in contract.variables if name not in mine]:
        yield f"Of the other sites: {', '.join(theirs)}"
    yield ""
    if contract.alignment is not None:
        yield from _aligned(contract.alignment, own.party, analyst)
        yield ""
    yield f"{analyst} learns, {runs}:"
    if contract.queries:
        for query in contract.queries:
            yield from _declared(query["kind"], query["fields"])
        if "model" in contract.options:
            yield from _model(contract, own)
        yield ""
        yield "Nobody receives a record or an identifier."
        return
    yield "- the number of records; of each variable the name and the states"
    yield from _learned(contract, mine)
    yield from _released(contract)
    yield ""
    if others:
        yield f"The other sites ({', '.join(others)}) learn the same, except the tables;"
        yield "and whether they hold the same people"
    yield f"The dealer ({contract.dealer[0]}) learns what the sites learn, except the choices"
    yield "Nobody receives a record or an identifier."
    yield ""
    yield from _unprotected(contract)


def _aligned(alignment: Alignment, own: Party, analyst: Party) -> Iterator[str]:
    """Yield what an alignment of the lists of people shows, and to whom."""
    sizes, others = alignment.size, [site for site in alignment.sites if site != own]
    rules = ", ".join(alignment.rules)
    yield f"The lists of people are matched, level {alignment.level}, by the rules {rules}:"
    yield "- no list leaves a site; blinded identifiers do"
    lists = ", ".join(f"{site} {sizes[site]:,}" for site in others)
    yield f"- public sizes of the lists: this site {sizes[own]:,}; {lists}"
    who = (
        f"in all lists of {', '.join(alignment.everyone)}" if alignment.everyone else "in any list"
    )
    yield f"- in the study is who is {who}: at least {alignment.fewest} people"
    for one, other in alignment.apart:
        yield f"  {one} and {other} must hold different people of the study"
    if alignment.level == 1:
        yield "- each site learns which of its own people are in the study"
        yield (
            f"  who puts names into the list of {' or '.join(others)} learns which of them are in "
            "the study: believe their sizes, or do not approve"
        )
    else:
        yield "- each site learns how many people are in the study, and not who; sites hold shares"
        yield "  of the rows, which nobody reads without the dealer or all other sites"
        yield (
            f"  {analyst} and a site together read from tables who is in a group of own people of "
            "whom none or all are in the study"
        )
    yield f"- {analyst} learns how many people are in which of the lists, and not who"


def _learned(contract: Contract, mine: Collection[str]) -> Iterator[str]:
    learning = contract.options["learning"]
    if learning["structure"] is not None:
        yield "- no choice: the study states the parents of each variable"
        for node, parents in learning["structure"]:
            if not set(mine).isdisjoint((node, *parents)):
                yield f"  a table with variables of this site: {', '.join((node, *parents))}"
        return
    over = "all records"
    if learning["structure_records"] is not None:
        over = f"a random sample of {learning['structure_records']:,} records"
    options, steps = options_of_json(learning), most_steps(contract)
    compared = COMPARED[options.by].format(most=widest(contract) - 1, given=options.class_variable)
    yield f"- by {options.by}: {compared}; and which of these win narrowly"
    yield (
        f"  compared over {over}; no count: at most {most_bits(contract):,.0f} bits"
        f"{f' and {steps} steps' if steps else ''} in each run, also if it fails later"
    )
    yield "  what is compared next, and how often, depends on the winners: the dealer sees both"
    for edge in options.constraints.required:
        if not set(mine).isdisjoint(edge):
            yield f"  required by the study, whatever the data show: {' -> '.join(edge)}"


def _released(contract: Contract) -> Iterator[str]:
    number = len(contract.variables)
    yield (
        f"- {counted(number, 'table')} of counts over all records: one for each variable with its "
        f"parents, at most {counted(widest(contract), 'variable')} in a table"
    )
    if contract.options["learning"]["missing"] != "available":
        yield "  a missing value counts as a state of its own"
    rule = contract.rule
    assert rule is not None  # as `contract_of` checks
    words = {
        "exact": "the counts are exact",
        "cut": f"a count below {rule.fewest} is released as 0; the other counts are exact",
    }
    yield f"  rule {rule.kind}: {words.get(rule.kind, f'the counts have {rule.words}')}"


def _unprotected(contract: Contract) -> Iterator[str]:
    rule, analyst, learning = contract.rule, contract.analyst[0], contract.options["learning"]
    assert rule is not None  # as `contract_of` checks
    yield "What the rule does not protect:"
    if rule.kind == "exact":
        yield "- a count of 1 singles out a person, whose values in that table are then known"
    if rule.kind == "cut":
        yield (
            f"- counts from {rule.fewest} on are exact; tables that share variables can give back "
            "some counts that were cut"
        )
        yield "- two studies over data that differ by few people can show what these people have"
    if not rule.is_noisy:
        yield (
            f"- a site that works with {analyst} and shows groups of people that differ by one "
            "person: counts of two groups differ by this person's value"
        )
    if rule.is_noisy:
        yield "- choices have no noise: epsilon is the promise of the tables alone"
    if rule.is_noisy:
        yield (
            f"- a value of a person by epsilon {rule.epsilon:g}: this is for whether the person is "
            f"in the data; for the value it is {2 * rule.epsilon:g}"
        )
    if rule.kind == "laplace":
        share = f"more than {rule.dishonest:.0%} of the sites" if rule.dishonest else "a site"
        yield f"- {share} working with {analyst}: who knows a site's part of the noise subtracts it"
    if learning["structure"] is None and learning["missing"] != "state":
        yield (
            "- scores are compared over the people who miss no value of the compared variables, "
            "even if these are few: a winner can tell what two people have"
        )
    yield (
        "- a site that lies about its own columns: it can change what is chosen and released, and "
        f"read values of this site together with {analyst}, under each rule"
    )


def _declared(kind: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the analyst learns by one declared query."""
    if kind == "describe":
        yield "- the number of records; of each variable the name and the states"
    if kind in ("sums", "updates"):
        whose = "the sum over all sites of" if kind == "sums" else "from this site alone,"
        yield f"- {whose} the counts of {_counted(fields['terms']['schema'])}: {_noise(fields)}"
    if kind == "updates" and fields["iterations"] > 1:
        yield f"  other sites learn estimates with this noise, {fields['iterations']} times"
    if kind == "report":
        yield (
            f"- for each person a perturbed report ({fields['asked']['reports']}), epsilon "
            f"{fields['asked']['eps']:g} for one person"
        )
    if kind == "publish":
        yield (
            f"- from this site, the counts of {fields['split']['target']['name']} with each of its "
            f"variables, each count with Laplace noise, epsilon {fields['eps']:g}"
        )
    if kind in ("predict", "score table"):
        yield from _odds(kind, fields)
    if kind == "scores":
        target, last = fields["split"]["target"]["name"], fields["last"]
        yield f"- the scores of each {target} of {last} records, without noise"
    if kind == "consensus":
        agreed = fields["agreed"]
        yield (
            f"- after {fields['last']} rounds the mean statistics of all sites for "
            f"{agreed['spec']['target']}, and the number of errors of each round; without noise"
        )
        seen = "this site's own statistics" if agreed["shown"] else "sums that have this site's"
        yield f"  the neighbours of this site see {seen} in each round"


def predicted_from(odds: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the variables from which a declared query predicts, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(odds["tables"])))


def _odds(kind: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the analyst learns of the log odds of records."""
    last, odds = fields["rows"]["last"], fields["odds"]
    target, states = odds["target"], ", ".join(odds["states"])
    named = ", ".join(predicted_from(odds))
    some = "" if last is None else f"of {counted(last, 'record')}, drawn at random,"
    if kind == "predict":
        each = "each record" if last is None else f"each {some}"
        yield f"- for {each} the probabilities of {target} ({states}), without noise"
        yield f"  they are computed from the record's values of {named}"
        return
    rule, bins = Rule(**fields["rule"]), len(fields["thresholds"][1]) + 1
    how_many = "how many records" if last is None else f"how many {some}"
    yield f"- {how_many} have each state of {target} ({states}) in each of {bins} bins"
    yield f"  of a score, from the values of {named}"
    yield f"  by the rule {rule.kind}: {rule.words}"


def _model(contract: Contract, own: SiteFile) -> Iterator[str]:
    """Yield by which model records are predicted, and what the approval of it protects."""
    model, analyst = contract.options["model"], contract.analyst[0]
    yield ""
    yield f"The model is the file {model['file']}, SHA-256"
    yield f"  {grouped_digest(bytes.fromhex(model['sha256']))}"
    yield "  Sites that hold one of these variables receive tables that follow from the model; they"
    yield "  and the dealer learn what is predicted, and the names and states of the variables."
    yield "  This approval is for this model: other tables are refused."
    if contract.rule is None:
        yield f"  If the model was made for it, {analyst} can read the values of these variables"
        yield "  from the probabilities: approve a model that you know, and compare its SHA-256."
        most = own.policy.most_scores
        yield f"  The policy of {own.party} allows {most} such records, in all studies together."
    else:
        yield "  A model that was made for this can place a person in a bin of the table: approve a"
        yield "  model that you know, and compare its SHA-256."


def _counted(schema: Mapping[str, Any]) -> str:
    """Return the tables, and the numbers, of a declared `Schema`, or of a `Declaration`."""
    if "statistics" in schema:
        families = chain.from_iterable(s.get("families", ()) for s in schema["statistics"])
        tables = [(family["child"], *family["parents"]) for family in families]
        columns = chain.from_iterable(s.get("columns", ()) for s in schema["statistics"])
        names = dict.fromkeys(columns)
    else:
        target = schema["target"]["name"]
        states = [name for name, feature in schema["features"] if "states" in feature]
        tables = [(target,), *((name, target) for name in states)]
        names = dict.fromkeys(n for n, feature in schema["features"] if "states" not in feature)
    squares = f"; the sums of {', '.join(names)} and of their squares" if names else ""
    return ", ".join(map(" x ".join, tables)) + squares


def _noise(fields: Mapping[str, Any]) -> str:
    if (asked := fields["terms"]["privacy"]) is None:
        return "exact, without noise"
    privacy = Privacy(**asked)
    of = "in all" if privacy.accounting == "whole" else "for each count"
    also = f" and delta {privacy.delta:g}" if privacy.noise in ("gaussian", "diluted") else ""
    return f"{privacy.noise} noise, epsilon {privacy.eps:g}{also} {of}, for each {privacy.protects}"
