"""A site that works with the analyst makes its columns for an attack: what approved studies leave.

The policy of the victim is the default, the owners have approved the study, and the rule releases
no count below 10. In the first two attacks every message is as the protocol says: the columns look
like any others. In the third, the site commits numbers in place of indicators.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.privacy.test_attacks_on_approved_studies import begun, federation_of, released
from vertibayes.choosing import TableChooser, follow
from vertibayes.counting import PlainCounter
from vertibayes.options import Options
from vertibayes.released import steps_of_study
from vertibayes.structure.algorithms import ALGORITHMS
from vertibayes.structure.learners import search_of
from vertibayes_mpc.commitments import Holder
from vertibayes_protocols.approval import Steps
from vertibayes_protocols.choices import Choices, scores_of
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries.releases import release as release_query
from vertibayes_protocols.queries.releases.plan import ReleaseNoise
from vertibayes_protocols.release import Rule
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Variable

CUT, NOISE = Rule("cut", fewest=10), Rule("laplace", epsilon=1.0)


def columns(states, *, missing=False, **codes):
    """Return a site's data, of columns with these states."""
    arrays = {name: np.array(column, np.uint8) for name, column in codes.items()}
    return SiteData({name: Variable(name, states, missing) for name in codes}, arrays)


def victim(records, states=("no", "yes")):
    """Return a site with one column that nobody else knows."""
    rng = np.random.default_rng(1)
    return columns(states, v=rng.integers(0, len(states), records))


# ---- groups of people that differ by one person --------------------------------------------------

FIRST, LAST, PEOPLE = 30, 70, 100


def read_by_groups(rule):
    """Return the share of the values that tables of groups read: the first 30 people, 31, ..

    And the values of the people who change a count.
    """
    people, places = victim(PEOPLE), range(FIRST, LAST + 1)
    groups = {f"first{k}": np.arange(PEOPLE) < k for k in places}
    data = {"a": people, "b": columns(("no", "yes"), **groups)}
    families = [Family("v"), *(Family(name, ("v",)) for name in groups)]
    _, *tables = released(data, rule, *families)
    read = np.diff([table[1, 1] for table in tables])
    values = people.codes["v"][FIRST:LAST]
    return float(((read > 0.5) == values).mean()), values[read > 0.5]


def test_a_cut_does_not_hide_a_person_by_whom_two_groups_differ():
    """All counts are above 10 and exact; one count less another is one person's value."""
    assert read_by_groups(CUT)[0] == 1.0


def test_rounding_hides_those_of_them_who_do_not_change_a_multiple():
    """One in ten of those who have the value changes it, and is read."""
    share, read = read_by_groups(Rule("rounded", fewest=10))
    assert share < 0.75 and 1 <= read.size <= 4 and read.all()


def test_noise_hides_a_person_by_whom_two_groups_differ():
    assert read_by_groups(NOISE)[0] < 0.75


# ---- choices over few complete records -----------------------------------------------------------


def read_by_pairs(missing, records=30, algorithm="k2", **options):
    """Return the share of neighbours in the list of whom the learned structure says who differ.

    Column k has values of the persons k and k + 1 alone, which differ. If v differs, too, then v
    predicts the column better than nothing does; otherwise it does not.
    """
    people, pairs = victim(records), {}
    for place in range(records - 1):
        pairs[f"pair{place}"] = np.full(records, 2)
        pairs[f"pair{place}"][place : place + 2] = 0, 1
    data = {"a": people, "b": columns(("no", "yes"), missing=True, **pairs)}

    learning = Options(algorithm=algorithm, max_parents=1, missing=missing)

    def learner(study) -> Steps[object]:
        return steps_of_study(study, learning, CUT)

    federation, contract = federation_of(data, learner, **options)
    with federation:
        study = begun(federation, contract)
        ask = lambda s: study.choose(s) if isinstance(s, Choices) else study.release(s) and ()  # noqa: E731
        structure = follow(learner(study.joined.study), ask)
    edges = {frozenset(edge) for edge in structure.edges}
    read = np.array([frozenset((name, "v")) in edges for name in pairs])
    return float((read == (np.diff(people.codes["v"].astype(int)) != 0)).mean())


@pytest.mark.parametrize(
    ("algorithm", "missing"), [("k2", "available"), ("k2", "em"), ("chow_liu", "em")]
)
def test_winners_of_scores_over_two_complete_records_read_a_column(algorithm, missing):
    """No count is released: `fewest_records` does not bound the records of a score."""
    assert read_by_pairs(missing, algorithm=algorithm) == 1.0


@pytest.mark.parametrize("algorithm", ["k2", "chow_liu"])
def test_scores_that_count_missing_values_as_a_state_are_over_all_records(algorithm):
    assert read_by_pairs("state", algorithm=algorithm) < 0.75


def read_among_known(algorithm, people, missing=False, records=1000):
    """Return the share of 20 persons whose value the winners tell, from columns of few people.

    A column has the values of some known people, half of whom have v, and of one more person: as if
    this person had v, too. If so, v predicts the column well enough to outweigh a penalty or test.
    """
    codes = victim(records).codes["v"]
    known = [np.flatnonzero(codes == value)[: people // 2] for value in (0, 1)]
    unknown = np.setdiff1d(np.arange(records), np.concatenate(known))[:20]
    columns_of = {f"p{place}": np.full(records, 2) for place in unknown}
    for place, column in zip(unknown, columns_of.values(), strict=True):
        column[known[0]], column[known[1][1:]], column[place] = 0, 1, 1
    data = columns(("no", "yes"), missing=True, **columns_of)
    variables = {**data.variables, "v": Variable("v", ("no", "yes"))}
    chooser = TableChooser(PlainCounter(SiteData(variables, {**data.codes, "v": codes})))
    steps = ALGORITHMS[algorithm].steps(
        search_of(chooser, algorithm, max_parents=1, missing=missing)
    )
    first = next(steps)
    read = []
    for name in columns_of:
        families = {Family(name, ("v",)), Family("v", (name,))}
        sets = zip(first.sets, chooser.choose(first), strict=True)
        won = (candidates[winner] for candidates, winner in sets)
        read.append(any(score.family in families for one in won for score in scores_of(one)))
    return float((np.array(read) == (codes[unknown] == 1)).mean())


@pytest.mark.parametrize(("algorithm", "people"), [("pc", 4), ("hill_climbing", 6), ("hybrid", 2)])
def test_winners_read_a_value_from_columns_of_few_people_in_spite_of_penalties(algorithm, people):
    """The first call is enough, and no test or penalty asks for more people."""
    assert read_among_known(algorithm, people) == 1.0
    assert read_among_known(algorithm, people, missing=True) < 0.75


def test_the_bits_of_all_winners_are_limited_also_in_runs_that_release_nothing():
    """A run over 10 people shows up to 31 bits: who wins of 2, of 3, .. of 10; 9 close choices."""
    memories = {site: SiteMemory() for site in "ab"}
    limited = {"memories": memories, "policy": Policy(most_choice_bits=70)}
    for seed in (b"one", b"two"):
        assert read_by_pairs("em", 10, seed=seed, **limited) == 1.0
    assert memories["a"].chosen == 2 * 31
    with pytest.raises(QueryRefusedError, match="of 93 bits: its policy allows most_choice_bits"):
        read_by_pairs("em", 10, seed=b"three", **limited)


# ---- a site that knows its part of the noise -----------------------------------------------------


class Known(ReleaseNoise):
    """Noise that the analyst subtracts again."""

    def of_a_site(self, randomness=None):
        share = super().of_a_site()
        return share if randomness is None else partial(np.zeros, dtype=np.int64)


def read_without_own_noise(monkeypatch, rule, sites=5):
    """Return the share of three values that a table of all people reads, of a site among several.

    The other sites tell the analyst their noise.
    """
    honest = release_query.release_share

    def release_share(site, plan, randomness):
        if site.party != "a":
            plan = replace(plan)
            plan.__dict__["noise"] = Known(plan.tables, sites)
        return honest(site, plan, randomness)

    monkeypatch.setattr(release_query, "release_share", release_share)
    people = victim(120, ("no", "yes", "maybe"))
    place = Variable("place", tuple(f"person {k}" for k in range(120)))
    others = {f"c{k}": columns(("no", "yes"), **{f"c{k}": np.arange(120) % 2}) for k in range(3)}
    data = {"a": people, "b": SiteData({"place": place}, {"place": np.arange(120, dtype="u1")})}
    family = Family("v", ("place",))
    tables = [released(data | others, rule, family, seed=seed)[0] for seed in (b"one", b"two")]
    return float(np.mean([(t.argmax(axis=0) == people.codes["v"]).mean() for t in tables]))


def test_without_accomplices_the_noise_of_one_site_is_less_than_epsilon_promises(monkeypatch):
    """At eps = 1, the best guess among three values is right for 0.60 of all people."""
    rule = Rule("laplace", epsilon=1.0, dishonest=0.0)
    assert read_without_own_noise(monkeypatch, rule) > 0.75


@pytest.mark.parametrize("dishonest", [0.8, 1.0])
def test_with_accomplices_the_noise_of_one_site_is_what_epsilon_promises(monkeypatch, dishonest):
    rule = Rule("laplace", epsilon=1.0, dishonest=dishonest)
    assert read_without_own_noise(monkeypatch, rule) < 0.70  # 3 standard deviations more


# ---- a site that lies ----------------------------------------------------------------------------


def read_by_weights(monkeypatch, rule, weight):
    """Return the share of the values that a table reads: b commits weights in place of ones."""
    people, honest = victim(PEOPLE, ("no", "yes", "maybe")), Holder.clear

    def clear(self, form, place, block):
        column = honest(self, form, place, block)
        return column * column.dtype.type(weight) if self.party == "b" else column

    monkeypatch.setattr(Holder, "clear", clear)
    names = tuple(f"person {k}" for k in range(PEOPLE))
    place = SiteData({"place": Variable("place", names)}, {"place": np.arange(PEOPLE, dtype="u1")})
    (table,) = released({"a": people, "b": place}, rule, Family("v", ("place",)))
    return float((table[:, 1:].argmax(axis=0) == people.codes["v"][1:]).mean())


@pytest.mark.parametrize("rule", [CUT, NOISE], ids=["cut", "noise"])
def test_a_site_that_commits_weights_reads_a_column_under_each_rule(monkeypatch, rule):
    """A count of one person counts twenty. The sum of the table stays what it is: no check fails.

    A table's first cell is what the others leave of the record count, whatever was committed.
    """
    assert read_by_weights(monkeypatch, rule, weight=20) == 1.0


@pytest.mark.parametrize("rule", [CUT, NOISE], ids=["cut", "noise"])
def test_each_rule_hides_the_column_from_an_honest_list_of_people(monkeypatch, rule):
    assert read_by_weights(monkeypatch, rule, weight=1) < 0.75
