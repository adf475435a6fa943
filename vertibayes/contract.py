"""What a contract says of a learner: its options as JSON, and the steps that follow from them.

A site that has approved a contract calls `steps_of_contract` and derives each step itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import ceil
from typing import Any

from vertibayes.dag import Structure
from vertibayes.options import STRUCTURES, Options
from vertibayes.released import check_options, steps_of_study
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.constraints import Constraints
from vertibayes_protocols.approval import ContractSteps, Takes
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.variables import Family

BAYESIAN_NETWORK = "bayesian_network"


def options_json(options: Options) -> dict[str, Any]:
    """Return options as JSON: the content of the files that they name, not the files' names."""
    values = options.as_json()
    for name in STRUCTURES:
        if (given := getattr(options, name)) is not None:
            values[name] = [[node, [*own]] for node, own in given.parents.items()]
    return values


def options_of_json(content: Mapping[str, Any]) -> Options:
    """Return the options of JSON, the inverse of `options_json`."""
    known = {field.name for field in fields(Options)}
    if wrong := sorted(set(content) ^ known):
        is_ = "unknown" if wrong[0] in content else "missing"
        raise ValueError(
            f"the option {wrong[0]!r} of the contract is {is_}; use one release of vertibayes at "
            "all parties"
        )
    values = dict(content)
    try:
        for name in STRUCTURES:
            if values[name] is not None:
                values[name] = Structure({n: tuple(ps) for n, ps in values[name]})
        if values["ordering"] is not None:
            values["ordering"] = [str(name) for name in values["ordering"]]
        values["constraints"] = Constraints.from_json(values["constraints"])
        return Options(**values)
    except TypeError as error:
        raise ValueError(f"the options of the contract are not valid: {error}") from None


def steps_of_contract(contract: Contract) -> ContractSteps:
    """Return what gives the steps of a contract, in a study that the sites have committed.

    Raises
    ------
    ValueError
        If the contract's learner has no steps, or its options or its rule do not fit.
    """
    if contract.learner != BAYESIAN_NETWORK:
        raise ValueError(
            f"sites cannot follow the learner {contract.learner!r} step by step; expected "
            f"{BAYESIAN_NETWORK!r}"
        )
    if (rule := contract.rule) is None:
        raise ValueError(
            "the contract has no rule, by which a Bayesian network releases its tables"
        )
    options = options_of_json(contract.options["learning"])
    check_options(options)
    given = options.structure or options.start
    named = given.nodes if given is not None else options.ordering
    if named is not None and sorted(named) != sorted(contract.variables):
        wrong = ", ".join(sorted(set(named) ^ set(contract.variables))) or "a name twice"
        raise ValueError(f"the ordering or structure does not fit the study's variables: {wrong}")

    learned = tuple(map(Family, contract.variables))  # with parents that are not known yet
    families = learned if options.structure is None else tuple(options.structure.families)
    takes = Takes(ceil(most_bits(contract)), families)
    return ContractSteps(lambda study: steps_of_study(study, options, rule), takes)


def widest(contract: Contract) -> int:
    """Return how many variables a table of a contract has at most."""
    options = options_of_json(contract.options["learning"])
    if options.structure is not None:
        return max(len(family.members) for family in options.structure.families)
    return min(options.most_parents + 1, len(contract.variables))


def most_bits(contract: Contract) -> float:
    """Return how many bits a contract's choices reveal at most: winners, and which are decided."""
    options = options_of_json(contract.options["learning"])
    if options.structure is not None:
        return 0.0
    bits = ALGORITHMS[options.by].bits
    assert bits is not None  # `check_options`
    most = bits(len(contract.variables), options.most_parents)
    return most if options.most_bits is None else min(most, options.most_bits)


def most_steps(contract: Contract) -> int | None:
    """Return in how many steps a contract's choices are asked at most; None without a bound."""
    options = options_of_json(contract.options["learning"])
    calls = ALGORITHMS[options.by].calls
    if options.structure is not None or calls is None:
        return None
    return calls(len(contract.variables), options.most_parents)
