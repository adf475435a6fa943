"""What each release rule costs and hides: ALARM, 10,000 records.

    python benchmarks/release_rules.py --data FOLDER [--parts rules cut programs tracing]

rules: KL(true || learned) in nats, exactly computed. K2's structure in a topological order with at
most 3 parents, and the true structure; EM from tables with 10 and 30 % of the cells missing, true
structure. Noise as of three sites, means of three draws, with missing values one draw; each site
adds a copy, or, "no accomplice", a third of one (`dishonest` 0). Each entry has the divergence with
the default pseudo-count, and with the best of several, which a user does not know; for cut also
both with estimates of the hidden counts (`vertibayes.counting.hidden_counts`).

cut: linear programs over the number of records and all margins that two tables have in common find
the least and the largest value of each hidden count; where these are the same integer, it is known.

programs: how many counts from 1 to 9 linear programs find in the tables of a study, and of two
studies with different structures (`known_counts.py`), by cut and rounded; and what the rule costs
in log-likelihood of other records and AUC. ALARM; Adult by `hill_climbing`, and with all variables
given native-country; and Adult with flags that 1 to 9 people have. "Merged": states of fewer than
10 people are one state, as at a site.

tracing: the power of the likelihood-ratio attack on the CPTs of the true structure, at 5 % false
alarms, beside the bound of the report.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from runs import arguments, seed_of
from side_by_side import Rows, on_one_thread, table

on_one_thread()

import numpy as np
from known_counts import CountTable, Known, Programs
from missing import completely_at_random
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import rankdata

from vertibayes.counting import PlainCounter
from vertibayes.counting.hidden_counts import HiddenCounts, with_estimates
from vertibayes.counting.released import ReleasedCounter
from vertibayes.dag import Structure
from vertibayes.inference.marginals import Marginals
from vertibayes.learning import learn
from vertibayes.network import Network, read_model
from vertibayes.options import Options
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.parameters.em_tables import fit_em_from_tables
from vertibayes.report.release.tracing import tracing_power
from vertibayes.sampling import sample
from vertibayes.settings import PSEUDO_COUNT
from vertibayes.structure.learners import k2
from vertibayes.table_scores import free_parameters
from vertibayes_protocols.queries.releases.plan import ReleaseNoise, function_of
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoded import encode_known
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text import read_columns
from vertibayes_protocols.variables import Variable

SITES = 3
DRAWS = 3  # of noise; one with missing values, as EM takes seconds
PSEUDO_COUNTS = 1, 3, 10, 30
TOLERANCE = 1e-4  # of EM; 1e-6 changes the fourth decimal
RULES = (
    Rule("exact"),
    *(Rule("cut", fewest=fewest) for fewest in (5, 10)),
    *(
        Rule(kind, epsilon=epsilon, dishonest=share)
        for share in (1.0, 0.0)
        for kind in ("laplace", "gaussian")
        for epsilon in (1, 2, 5, 10)
    ),
)
PROGRAMMED = ((Rule("exact"),), (Rule("cut"),), (Rule("rounded"),), (Rule("laplace"),))
PAIRS = ((Rule("rounded"), Rule("rounded", fewest=7)), (Rule("rounded"), Rule("cut")))
PAIRED = "Adult, hill_climbing"  # whose tables are also released by two rules
ATTACKED = 500, 2_000, 10_000  # records
ATTACKS = 8


class Case(NamedTuple):
    """Records, and a structure whose tables are released."""

    data: SiteData
    structure: Structure
    missing: bool = False


def released(case: Case, rule: Rule) -> ReleasedCounter:
    """Apply a rule to tables of pooled records, as the sites do to their shares."""
    request = FamilyTables(case.structure.families, case.missing, rule)
    tables = PlainCounter(case.data).tables(request.families, missing=case.missing)
    if function := function_of(rule, case.data.records):
        tables = list(map(function, tables))
    if rule.is_noisy:
        draw = ReleaseNoise(request, SITES).of_a_site()
        copies = [[draw(counts.size) for _ in range(SITES)] for counts in tables]
        tables = [c + sum(n).reshape(c.shape) for c, n in zip(tables, copies, strict=True)]
    return ReleasedCounter(case.data.variables, case.data.records, request, tables)


def divergence(truth: Network, model: Network) -> float:
    """Return KL(truth || model) in nats; the structures may differ."""
    marginals = Marginals.of(truth)

    def expected(network: Network) -> float:
        total = 0.0
        for family in network.structure.families:
            joint = marginals.joint(family.members)
            seen = joint > 0
            total += float((joint[seen] * np.log(network.cpts[family.child][seen])).sum())
        return total

    return expected(truth) - expected(model)


def distance(truth: Network, case: Case, counter: ReleasedCounter, pseudo_count: float) -> float:
    """Fit CPTs to released tables, by EM if values are missing, and return the divergence."""
    if case.missing:
        fit = fit_em_from_tables(
            counter, case.structure, pseudo_count=pseudo_count, tolerance=TOLERANCE
        ).network
    else:
        fit = fit_cpts(counter, case.structure, pseudo_count=pseudo_count)
    return divergence(truth, fit)


def cost(truth: Network, case: Case, rule: Rule) -> str:
    """Return the divergence with the default pseudo-count and the best one, twice."""
    draws = DRAWS if rule.is_noisy and not case.missing else 1
    counters = [released(case, rule) for _ in range(draws)]
    ways = [counters]
    if rule.kind == "cut":
        ways.append([with_estimates(counter) for counter in counters])
    return " / ".join(text for way in ways for text in with_counts(truth, case, way))


def with_counts(truth: Network, case: Case, counters: list[ReleasedCounter]) -> list[str]:
    """Return the mean divergence with the default pseudo-count and the best one."""
    means = {
        count: float(np.mean([distance(truth, case, c, count) for c in counters]))
        for count in (PSEUDO_COUNT, *PSEUDO_COUNTS)
    }
    best = min(means, key=means.__getitem__)
    return [f"{means[PSEUDO_COUNT]:.3f}", f"{means[best]:.3f} ({best:g})"]


def named(rule: Rule) -> str:
    """Return the rule with its number."""
    if rule.kind == "exact":
        return rule.kind
    words = {"cut": f"cut below {rule.fewest}", "rounded": f"rounded to multiples of {rule.fewest}"}
    alone = "" if rule.dishonest else ", no accomplice"
    return words.get(rule.kind, f"{rule.kind}, eps {rule.epsilon:g}{alone}")


def rules(truth: Network, cases: dict[str, Case]) -> str:
    """Return the table of all rules and cases."""
    rows = Rows(
        [named(rule), *(cost(truth, case, rule) for case in cases.values())] for rule in RULES
    )
    return table("release_rules", ["rule", *cases], rows)


# ---- hidden counts -------------------------------------------------------------------------------


def bounds(hidden: HiddenCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest value of each hidden count, by linear programs."""
    ends = []
    for sign in (1, -1):
        values = np.zeros(hidden.size)
        for unknown in range(hidden.size):
            goal = np.zeros(hidden.size)
            goal[unknown] = sign
            solved = linprog(
                goal,
                A_eq=hidden.matrix,
                b_eq=hidden.totals,
                bounds=(0, hidden.most),
                method="highs",
            )
            assert solved.status == 0, solved.message
            values[unknown] = sign * solved.fun
        ends.append(values)
    return np.ceil(ends[0] - 1e-6).astype(int), np.floor(ends[1] + 1e-6).astype(int)


def cut(cases: dict[str, Case]) -> str:
    """Return how many hidden counts the programs find, for cuts of complete records."""
    rows = Rows()
    for name, case in cases.items():
        for rule in (rule for rule in RULES if rule.kind == "cut" and not case.missing):
            start = perf_counter()
            hidden = HiddenCounts(released(case, rule))
            least, most = bounds(hidden)
            exact = released(case, Rule("exact")).released
            truth = np.concatenate([c[p >= 0] for c, p in zip(exact, hidden.places, strict=True)])
            assert ((least <= truth) & (truth <= most)).all()
            known = least == most
            shown = f"{known.sum()} of {known.size}"
            above = f"{(known & (truth > 0)).sum()} of {(truth > 0).sum()}"
            ones = f"{(known & (truth == 1)).sum()} of {(truth == 1).sum()}"
            seconds = f"{perf_counter() - start:.0f}"
            rows.append([f"{name}, {named(rule)}", shown, above, ones, seconds])
    header = ["tables", "hidden counts known", "of those above 0", "of those of 1", "s"]
    return table("release_rules_cut", header, rows)


# ---- known counts --------------------------------------------------------------------------------


class Held(NamedTuple):
    """One structure or two over the same records, and other records to test the first."""

    data: SiteData
    structures: tuple[Structure, ...]
    test: SiteData | None = None
    target: str = ""  # of which the AUC is measured


def tables_of(case: Held) -> list[CountTable]:
    """Return the exact tables of all structures."""
    families = [family for structure in case.structures for family in structure.families]
    tables = PlainCounter(case.data).tables(families)
    return [CountTable(f.members, counts) for f, counts in zip(families, tables, strict=True)]


def log_likelihoods(network: Network, data: SiteData, **given: int) -> NDArray[np.float64]:
    """Return the log-likelihood of each record; `given` states replace a record's."""
    codes = data.codes | {n: np.full(data.records, s) for n, s in given.items()}
    total = np.zeros(data.records)
    for family in network.structure.families:
        total += np.log(network.cpts[family.child][tuple(codes[n] for n in family.members)])
    return total


def tested(case: Held, rule: Rule) -> tuple[str, str]:
    """Return the mean log-likelihood of the test records in nats, and the AUC."""
    if case.test is None:
        return "", ""
    counter = with_estimates(released(Case(case.data, case.structures[0]), rule))
    network = fit_cpts(counter, case.structures[0])
    mean, name = f"{log_likelihoods(network, case.test).mean():.4f}", case.target
    if not name:
        return mean, ""
    odds = np.subtract(*(log_likelihoods(network, case.test, **{name: state}) for state in (1, 0)))
    ranks, positive = rankdata(odds), case.test.codes[name] == 1
    above = ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2
    return mean, f"{above / positive.sum() / (~positive).sum():.4f}"


def adult(folder: Path, fewest: int = 1) -> tuple[SiteData, SiteData]:
    """Return Adult's records to learn from, and those of its test that have the same states."""
    train, test = (
        read_columns(folder / "uci" / f"adult_{part}.csv.gz") for part in ("train", "test")
    )
    data = SiteData.from_text("adult", train, Encoding(fewest=fewest), strict=False)
    states = {name: variable.states for name, variable in data.variables.items()}
    coded = {n: encode_known("", n, test[n], Encoding(states=states), []) for n in states}
    known = np.logical_and.reduce([c.codes < len(states[n]) for n, c in coded.items()])
    codes = {name: column.codes[known] for name, column in coded.items()}
    return data, SiteData(data.variables, codes)


def flagged(data: SiteData, carriers: int) -> Held:
    """Return a study of Adult with flag -> x, x -> y of 5 x: all their counts are the carriers'."""
    chains = ("sex", "income"), ("race", "age"), ("workclass", "occupation")
    chains += ("relationship", "marital-status"), ("education", "hours-per-week")
    flag = np.zeros(data.records, np.uint8)
    flag[np.random.default_rng(seed_of(carriers)).choice(data.records, carriers, replace=False)] = 1
    names = [name for chain in chains for name in chain]
    chosen = data.take(names)
    variables = {"flag": Variable("flag", ("no", "yes")), **chosen.variables}
    edges = [edge for x, y in chains for edge in (("flag", x), (x, y))]
    structure = Structure.of(["flag", *names], edges)
    return Held(SiteData(variables, {"flag": flag, **chosen.codes}), (structure,))


def studies(folder: Path, truth: Network, cases: dict[str, Case]) -> dict[str, list[Held]]:
    """Return the studies of each row."""
    alarm, test = cases["true structure"].data, sample(truth, 10_000, seed=seed_of(1))
    k2s, true = (case.structure for case in cases.values())
    found = {
        "ALARM, K2's structure": [Held(alarm, (k2s,), test)],
        "ALARM, true structure": [Held(alarm, (true,), test)],
        "ALARM, both studies": [Held(alarm, (k2s, true))],
    }
    for merged in (1, 10):
        data, test = adult(folder, merged)
        options = Options(algorithm="hill_climbing")
        climbed = learn(PlainCounter(data), options).network.structure
        country = "native-country"
        star = Structure.of(data.variables, [(country, n) for n in data.variables if n != country])
        name = "Adult, merged" if merged > 1 else "Adult"
        found |= {
            f"{name}, hill_climbing": [Held(data, (climbed,), test, "income")],
            f"{name}, {country} -> all": [Held(data, (star,), test, "income")],
            f"{name}, both studies": [Held(data, (climbed, star))],
        }
    data, _ = adult(folder)
    return found | {"Adult, flags of 1 to 9 people": [flagged(data, n) for n in range(1, 10)]}


def programs(rows: dict[str, list[Held]]) -> str:
    """Return how many small counts are known under each rule, and what the rule costs."""
    shown = Rows()
    for name, cases in rows.items():
        for rules in (*PROGRAMMED, *(PAIRS if name == PAIRED else ())):
            start, known = perf_counter(), None
            if rules[0].kind in ("cut", "rounded"):
                solved = [Programs(tables_of(c), rules, c.data.records).known() for c in cases]
                known = Known(*map(sum, zip(*solved, strict=True)))
            elif cases[0].test is None:
                continue
            figures = [f"{known.known} of {known.small}", known.unsolved] if known else ["", ""]
            seconds = f"{perf_counter() - start:.0f}" if known else ""
            cost = tested(cases[0], rules[0]) if len(rules) == 1 else ("", "")
            shown.append([name, ", ".join(map(named, rules)), *figures, *cost, seconds])
    header = ["tables", "rule", "counts from 1 to 9 known", "programs not solved"]
    header += ["log-likelihood", "AUC", "s"]
    return table("release_rules_programs", header, shown)


# ---- tracing -------------------------------------------------------------------------------------


def log_ratio(model: Network, truth: Network, data: SiteData) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of each record."""
    with np.errstate(divide="ignore"):
        return log_likelihoods(model, data) - log_likelihoods(truth, data)


def attacked(truth: Network, records: int, seed: int) -> float:
    """Return the share of the records of a fit that exceed 95 % of other records."""
    inside, outside = (sample(truth, records, seed=seed_of(2 * seed + part)) for part in (0, 1))
    model = fit_cpts(
        released(Case(inside, truth.structure), Rule("exact")), truth.structure, pseudo_count=0
    )
    limit = np.quantile(log_ratio(model, truth, outside), 0.95)
    return float((log_ratio(model, truth, inside) > limit).mean())


def traced(truth: Network) -> str:
    """Return the measured power beside the bound."""
    parameters = sum(free_parameters(cpt.shape) for cpt in truth.cpts.values())
    rows = Rows()
    for records in ATTACKED:
        measured = np.mean([attacked(truth, records, seed) for seed in range(ATTACKS)])
        rows.append([records, f"{measured:.3f}", f"{tracing_power(parameters, records):.3f}"])
    return table("release_rules_tracing", ["records", "power of the attack", "bound"], rows)


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["rules", "cut", "programs", "tracing"])
    given = arguments(parser, data=True)
    folder = given.data
    truth = read_model(folder / "alarm" / "alarm.bif")
    data = {share: completely_at_random(folder, "alarm", share, truth) for share in (0, 10, 30)}
    learned = k2(PlainCounter(data[0]), ordering=truth.structure.order())
    cases = {
        "K2's structure": Case(data[0], learned),
        "true structure": Case(data[0], truth.structure),
    }
    if "rules" in given.parts:
        with_em = {
            f"EM, {share} % missing": Case(data[share], truth.structure, missing=True)
            for share in (10, 30)
        }
        print(rules(truth, cases | with_em), end="\n\n")
    if "cut" in given.parts:
        print(cut(cases), end="\n\n")
    if "programs" in given.parts:
        print(programs(studies(folder, truth, cases)), end="\n\n")
    if "tracing" in given.parts:
        print(traced(truth))


if __name__ == "__main__":
    main()
