"""A site answers an approved study, step by step, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from tests.protocols.listed import Listed
from tests.protocols.small import data_of, seeded, study_of
from vertibayes_mpc.commitments import BLOCK_ROWS
from vertibayes_protocols.alignment import Alignment
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.approved_study import open_approved
from vertibayes_protocols.choices import Choices, Score
from vertibayes_protocols.contract import Contract, grouped_digest
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.policy import FREE, Policy
from vertibayes_protocols.queries import Align, Begin, Commit, Describe, Meet
from vertibayes_protocols.queries.choices.choose import Choose, portions
from vertibayes_protocols.queries.releases.release import Release
from vertibayes_protocols.queries.tables.tables import ask_tables
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.study import CHOICE_INDICATORS
from vertibayes_protocols.variables import Family, Rows

RULE = Rule("cut", fewest=5)
DATA = data_of(60, a="xy", b="zw")
ORDER = ("x", "y", "z", "w")


def candidates(child, *parents):
    """Return the parents' candidates, and the empty one, as K2 asks for them."""
    return ((), *((Score(Family(child, (z,))), Score(Family(child), (z,), -1)) for z in parents))


def steps(study):
    """Choose one parent of each node at most, then release the learned families."""
    names = tuple(study.variables)
    sets = tuple(candidates(child, *names[: at + 1]) for at, child in enumerate(names[1:]))
    won = yield Choices(sets[:2])
    won += yield Choices(sets[2:])
    parents = [(), *((names[w - 1],) if w else () for w in won)]
    yield FamilyTables(tuple(map(Family, names, parents)), False, RULE)


def contract_of(federation, **changes):
    keys = federation.session.role.public_keys
    contract = Contract(
        sites=tuple((site, keys[site]) for site in federation.sites),
        dealer=(DEALER, keys[DEALER]),
        analyst=(ANALYST, federation.session.role.keys.public),
        variables=ORDER,
        learner="a test",
        options={"most": 1},
        rule=RULE,
        memory=study().memory,
    )
    return replace(contract, **changes)


@pytest.fixture
def world():
    """Start sites that answer approved studies alone, and approve one."""
    federation = seeded(DATA, policy=Policy())
    approve(federation, contract_of(federation))
    return federation


def approve(federation, *contracts, learner=steps, **more):
    approved = {c.digest: Approved(c, "A. Owner", "2026-01-31", learner, **more) for c in contracts}
    for role in federation.roles.values():
        role.approvals = approved.get
    return approved


def again(federation):
    """Begin another session with the same sites."""
    for role in federation.roles.values():
        role.leave()


def study(**changes):
    found = study_of(DATA)
    in_order = {name: found.variables[name] for name in ORDER}
    sizes = {"block_rows": BLOCK_ROWS, "most_indicators": CHOICE_INDICATORS}
    return replace(found, **{"variables": in_order, **sizes, **changes})


def opened(federation, contract=None):
    """Begin a run and open its study; return what the analyst has joined."""
    ask, contract = federation.session.ask, contract or contract_of(federation)
    ask(Begin.of(contract))
    ask(Meet.of(federation.session.role, contract.site_names, DEALER))
    ask(Describe(contract.site_names))
    return ask(Commit.of(study()))


def run(federation, joined):
    """Run all steps as an honest analyst does; return the released tables' families."""
    learner, won = steps(joined.study), None
    while True:
        step = learner.send(won)
        if isinstance(step, FamilyTables):
            federation.session.ask(Release.of(joined, step))
            return step.families
        won = ask_choices(federation, joined, step)


def ask_choices(federation, joined, choices):
    """Ask for a step, portion by portion."""
    won = ()
    for portion in portions(joined.study, choices):
        won += federation.session.ask(Choose.of(joined, portion))
    return won


def refuses(federation, query):
    """Return why a query is refused; nothing of it is run."""
    with pytest.raises(QueryRefusedError) as caught:
        federation.session.ask(query)
    return caught.value.reason


def tables(joined, *families, rows=Rows()):
    return ask_tables(joined, families, False, rows)[0]


# ---- a run ---------------------------------------------------------------------------------------


def test_an_approved_study_runs_to_its_release(world):
    families = run(world, opened(world))
    assert [family.child for family in families] == list(ORDER)
    assert world.roles["a"].memory.runs.count(contract_of(world).digest) == (1, 1)


def test_the_ledger_names_the_approver_and_the_date(world):
    opened(world)
    digest = grouped_digest(contract_of(world).digest)
    (fact,) = [f for f in world.roles["b"].ledger.facts if digest in f.what]
    assert "approved by A. Owner on 2026-01-31" in fact.what
    assert "run 1 " in fact.what and fact.to == (ANALYST,)


def test_a_study_releases_as_often_as_its_contract_says(world):
    twice = contract_of(world, runs=2)
    approve(world, twice)
    for _ in range(2):
        run(world, opened(world, twice))
        again(world)
    assert "its 2 runs are used up" in refuses(world, Begin.of(twice))


def test_free_tables_answer_any_query_and_approved_studies():
    federation = seeded(DATA, policy=FREE)
    approve(federation, contract_of(federation))
    joined = federation.session.ask(Commit.of(study()))
    assert federation.session.ask(tables(joined, Family("x")))
    joined = opened(federation)
    assert "is not the next step" in refuses(federation, tables(joined, Family("x")))
    assert run(federation, joined)


# ---- an analyst who lies -------------------------------------------------------------------------


def test_nothing_is_answered_before_a_study_begins(world):
    joined = seeded(DATA).session.ask(Commit.of(study()))
    role, sites = world.session.role, world.sites
    for query in (
        Meet.of(role, sites, DEALER),
        Describe(sites),
        Commit.of(study()),
        tables(joined, Family("x")),
        Release.of(joined, FamilyTables((Family("x"),), False, RULE)),
    ):
        assert "approved studies alone" in refuses(world, query)
    assert all(not role.ledger.facts for role in world.roles.values())


def test_another_digest_is_refused(world):
    contract = contract_of(world)
    for wrong in (bytes(32), contract.digest[:31], b"", contract.digest + b"\0"):
        assert "is not approved here" in refuses(world, Begin(contract.site_names, wrong))
    changed = contract_of(world, options={"most": 2})
    assert "is not approved here" in refuses(world, Begin.of(changed))


@pytest.mark.parametrize("party", ["analyst", "dealer", "sites"])
def test_a_contract_with_another_key_than_is_pinned_is_refused(world, party):
    contract = contract_of(world)
    name = "b" if party == "sites" else getattr(contract, party)[0]
    other = (name, bytes(range(32)))
    wrong = replace(contract, **{party: (contract.sites[0], other) if party == "sites" else other})
    approve(world, wrong)
    assert f"{name} of the approved contract is not the one" in refuses(world, Begin.of(wrong))


def test_the_opening_is_the_contracts_in_its_order(world):
    contract, role = contract_of(world), world.session.role
    world.session.ask(Begin.of(contract))
    assert "the next query is 'meet', got 'begin'" in refuses(world, Begin.of(contract))
    assert "the next query is 'meet', got 'describe'" in refuses(world, Describe(("a", "b")))
    assert "keys of the parties" in refuses(
        world, replace(Meet.of(role, ("a", "b"), DEALER), keys=(b"", b"", b""))
    )
    world.session.ask(Meet.of(role, ("a", "b"), DEALER))
    assert "the parties of 'describe'" in refuses(world, Describe(("a",)))
    world.session.ask(Describe(("a", "b")))
    names = study().variables
    for wrong in (ORDER[:3], ORDER[::-1]):
        parts = {
            "variables": {name: names[name] for name in wrong},
            "holders": {name: study().holders[name] for name in wrong},
        }
        reason = refuses(world, Commit.of(study(**parts)))
        assert "the variables, or their order" in reason
    assert "bytes of memory" in refuses(world, Commit.of(study(memory=study().memory // 2)))
    assert "up to 7 indicators" in refuses(world, Commit.of(study(most_indicators=7)))
    assert "blocks of 16 rows" in refuses(world, Commit.of(study(block_rows=16)))
    world.session.ask(Commit.of(study()))
    assert "is not the next step" in refuses(world, Commit.of(study()))


def test_a_commitment_gives_each_variable_to_the_site_that_shows_it(world):
    world.session.ask(Begin.of(contract_of(world)))
    world.session.ask(Meet.of(world.session.role, ("a", "b"), DEALER))
    world.session.ask(Describe(("a", "b")))
    holders = {**study().holders, "y": ("b",)}
    assert "holds other variables" in refuses(world, Commit.of(study(holders=holders)))


def test_a_site_describes_the_variables_of_the_contract_alone():
    federation = seeded(data_of(60, a="xyq", b="zw"), policy=Policy())
    approve(federation, contract_of(federation))
    federation.session.ask(Begin.of(contract_of(federation)))
    federation.session.ask(Meet.of(federation.session.role, ("a", "b"), DEALER))
    assert list(federation.session.ask(Describe(("a", "b")))["a"].named()) == ["x", "y"]


def crafted(joined):
    """Yield what an analyst would rather ask than the first step, and in which words."""
    first = next(steps(joined.study))
    yield "other candidates", Choose.of(joined, Choices((candidates("w", "x"),)))
    yield "another order", Choose.of(joined, replace(first, sets=first.sets[::-1]))
    one = replace(first, sets=(first.sets[0][::-1], *first.sets[1:]))
    yield "candidates in another order", Choose.of(joined, one)
    yield "some records", Choose.of(joined, replace(first, rows=Rows(0, 0, 30)))
    yield "missing values as states", Choose.of(joined, replace(first, missing=True))
    yield "a step skipped", Choose.of(joined, Choices((candidates("z", "x", "y"),)))
    yield "a table not learned", Release.of(joined, FamilyTables((Family("x"),), False, RULE))
    yield "exact tables", tables(joined, Family("x", ("y",)))


def test_an_analyst_who_lies_gets_nothing_crafted(world):
    joined = opened(world)
    for what, query in crafted(joined):
        assert "is not the next step" in refuses(world, query), what
    assert run(world, joined), "the run goes on as if nothing had been asked"


def test_the_free_mode_answers_what_is_crafted():
    """The control: the same queries, and sites that answer any."""
    federation = seeded(DATA, policy=FREE)
    joined = federation.session.ask(Commit.of(study()))
    for _, query in crafted(joined):
        federation.session.ask(query)


def test_winners_are_those_that_the_sites_have_seen(world):
    joined = opened(world)
    learner = steps(joined.study)
    won = ask_choices(world, joined, next(learner))
    liked = tuple(1 - min(winner, 1) for winner in won)
    assert liked != won
    second = learner.send(liked)
    won_2 = ask_choices(world, joined, second)
    released = learner.send(won_2)  # of winners that nobody has seen
    assert "is not the next step" in refuses(world, Release.of(joined, released))


@pytest.mark.parametrize("rule", [Rule("exact"), Rule("cut", fewest=4), Rule("laplace")])
def test_another_rule_is_refused_at_the_release(world, rule):
    joined = opened(world)
    learner, won = steps(joined.study), None
    while isinstance(step := learner.send(won), Choices):
        won = ask_choices(world, joined, step)
    assert "is not the next step" in refuses(world, Release.of(joined, replace(step, rule=rule)))
    more = replace(step, families=(*step.families, Family("w", ("x", "y", "z"))))
    assert "is not the next step" in refuses(world, Release.of(joined, more))
    world.session.ask(Release.of(joined, step))
    assert "has ended" in refuses(world, Release.of(joined, step)), "it is released once"
    assert "has ended" in refuses(world, Choose.of(joined, next(steps(joined.study))))


def test_a_withdrawn_approval_stops_a_run(world):
    joined = opened(world)
    world.roles["b"].approvals = lambda digest: None
    step, *_ = portions(joined.study, next(steps(joined.study)))
    reason = refuses(world, Choose.of(joined, step))
    assert "its approval has been withdrawn" in reason
    again(world)
    assert "is not approved here" in refuses(world, Begin.of(contract_of(world)))


def test_an_approval_that_is_damaged_in_a_run_stops_the_run(world):
    def damaged(digest):
        raise ValueError("not a valid approval")

    joined = opened(world)
    world.roles["b"].approvals = damaged
    step, *_ = portions(joined.study, next(steps(joined.study)))
    assert "withdrawn or has changed" in refuses(world, Choose.of(joined, step))


def test_an_approval_that_is_damaged_is_refused(world):
    def damaged(digest):
        raise ValueError("line 1 of /secret/path")

    world.roles["a"].approvals = damaged
    assert "cannot be used here" in (reason := refuses(world, Begin.of(contract_of(world))))
    assert "path" not in reason


@pytest.mark.parametrize(("day", "is_over"), [("2026-06-30", False), ("2026-07-01", True)])
def test_after_its_last_day_an_approval_stops_a_run_at_its_next_query(
    world, monkeypatch, day, is_over
):
    approve(world, contract_of(world), until="2026-06-30", purpose="permit 12/345\n")
    days = ["2026-06-30", day]
    monkeypatch.setattr("vertibayes_protocols.approval.today", lambda: days[0])
    joined = opened(world)
    said = [fact.what for fact in world.roles["b"].ledger.facts]
    assert any("2026-01-31 until 2026-06-30 for permit 12/345?; 0 of 1" in what for what in said)
    step, *_ = portions(joined.study, next(steps(joined.study)))
    days.pop(0)
    if not is_over:
        assert world.session.ask(Choose.of(joined, step))
        return
    ended = "its approval ended on 2026-06-30: its owner can approve it again, with another --until"
    assert ended in refuses(world, Choose.of(joined, step))
    again(world)
    assert ended in refuses(world, Begin.of(contract_of(world)))


@pytest.mark.parametrize("same", [True, False])
def test_the_ledger_says_which_version_of_the_data_a_run_uses(world, same):
    version = DATA["b"].version(ORDER)
    assert len({version, DATA["a"].version(ORDER), DATA["b"].version("w")}) == 3
    fewer = {name: codes[1:] for name, codes in DATA["b"].codes.items()}
    assert replace(DATA["b"], codes=fewer).version(ORDER) != version
    others = {n: codes[::-1] for n, codes in DATA["b"].codes.items()}
    assert replace(DATA["b"], codes=others).version(ORDER) == version  # of values it says nothing
    approve(world, contract_of(world), version=version if same else "0123abcd")
    run(world, opened(world))
    (said,) = [f.what for f in world.roles["b"].ledger.facts if f.what.startswith("run 1 ")]
    other = "" if same else ", other than the version that was approved, 0123abcd"
    assert said.endswith(f"0 of 1 runs used; data {version}{other}")


# ---- runs ----------------------------------------------------------------------------------------


def test_a_second_run_is_refused(world):
    run(world, opened(world))
    again(world)
    assert "its one run is used up" in refuses(world, Begin.of(contract_of(world)))


def test_runs_that_release_nothing_are_limited():
    federation = seeded(DATA, policy=Policy(most_failed_runs=2))
    approve(federation, contract_of(federation))
    for _ in range(2):
        opened(federation)
        again(federation)
    reason = refuses(federation, Begin.of(contract_of(federation)))
    assert "2 runs of the study began and released nothing" in reason


def test_a_begin_that_another_site_refuses_is_not_a_run(world):
    world.roles["b"].approvals = lambda digest: None
    for _ in range(20):
        assert "not approved" in refuses(world, Begin.of(contract_of(world)))
    assert world.roles["a"].memory.runs.count(contract_of(world).digest) == (0, 0)


def test_a_site_remembers_its_runs(tmp_path):
    path, digest = tmp_path / "memory", bytes(32)
    memory = SiteMemory(path)
    memory.runs.begin(digest)
    memory.runs.use(digest)
    memory.runs.begin(digest)
    memory.close()
    again = SiteMemory(path)
    assert again.runs.count(digest) == (2, 1) and again.runs.count(bytes(31)) == (0, 0)
    again.close()


def test_a_run_is_on_disk_before_its_release_is_answered(world, monkeypatch):
    joined = opened(world)
    role, seen = world.roles["a"], []
    monkeypatch.setattr(type(role.ledger), "open", lambda *_: None)
    learner, won = steps(joined.study), None
    while isinstance(step := learner.send(won), Choices):
        won = ask_choices(world, joined, step)
    assert role.memory.runs.count(contract_of(world).digest) == (1, 0)
    apply = role.memory.apply
    monkeypatch.setattr(role.memory, "apply", lambda *a, **k: (seen.append(1), apply(*a, **k)))
    world.session.ask(Release.of(joined, step))
    assert seen == [1] and role.memory.runs.count(contract_of(world).digest) == (1, 1)


# ---- with an alignment ---------------------------------------------------------------------------

LISTED = Listed({"a": "xy", "b": "zw"}, {"a": range(1, 81), "b": range(21, 101)}, everybody=100)
AGREED = Alignment(1, ("digits",), (("a", 80), ("b", 80)), ("a", "b"))


@pytest.fixture
def aligned():
    """Start sites that have approved a study with an alignment."""
    federation = seeded(LISTED.data, policy=Policy())
    approve(federation, contract_of(federation, alignment=AGREED))
    return federation


def test_a_study_with_an_alignment_runs_over_the_people_whom_all_sites_hold(aligned):
    contract = contract_of(aligned, alignment=AGREED)
    study = open_approved(aligned.session, contract, bytes(16))
    assert study.people.people == study.study.records == 60
    learner, won = steps(study.study), None
    while isinstance(step := learner.send(won), Choices):
        won = study.choose(step)
    tables = study.release(step)
    for family, table in zip(step.families, tables, strict=True):
        true = LISTED.table(*family.members)
        assert np.array_equal(table, np.where(true < RULE.fewest, 0, true))


def test_an_approved_study_runs_over_people_whom_no_site_knows():
    federation = seeded(LISTED.data, policy=Policy())
    contract = contract_of(federation, alignment=replace(AGREED, level=2))
    approve(federation, contract)
    study = open_approved(federation.session, contract, bytes(16))
    learner, won = steps(study.study), None
    while isinstance(step := learner.send(won), Choices):
        won = study.choose(step)
    for family, table in zip(step.families, study.release(step), strict=True):
        true = LISTED.table(*family.members)
        assert np.array_equal(table, np.where(true < RULE.fewest, 0, true))
    assert all(role.hidden is not None for role in federation.roles.values())


def test_the_alignment_of_an_approved_study_is_that_of_the_contract(aligned):
    contract = contract_of(aligned, alignment=AGREED)
    aligned.session.ask(Begin.of(contract, study=bytes(16)))
    other = replace(AGREED, sizes=(("a", 80), ("b", 90)))
    role = aligned.session.role
    meet = Meet.of(role, contract.site_names, DEALER)
    assert "the next query is 'align', got 'meet'" in refuses(aligned, meet)
    asked = Align.of(role, other, DEALER, bytes(16))
    assert "the alignment is not that of the contract" in refuses(aligned, asked)
    asked = Align.of(role, AGREED, DEALER, b"another")
    assert "not the one with which the run began" in refuses(aligned, asked)
    assert not any(site.memory.alignments for site in aligned.roles.values())


def test_an_approved_study_without_an_alignment_has_none(world):
    world.session.ask(Begin.of(contract_of(world)))
    asked = Align.of(world.session.role, AGREED, DEALER, bytes(16))
    assert "the next query is 'meet', got 'align'" in refuses(world, asked)


def test_the_alignment_is_part_of_the_digest_that_owners_approve(world):
    without, with_one = contract_of(world), contract_of(world, alignment=AGREED)
    assert "alignment" not in without.as_json() and without.digest != with_one.digest
    assert Contract.from_json(with_one.as_json()) == with_one
    for changes in ({"fewest": 20}, {"rules": ("text",)}, {"everyone": ("a",)}, {"level": 2}):
        other = replace(with_one, alignment=replace(AGREED, **changes))
        assert other.digest != with_one.digest
        assert Contract.from_json(other.as_json()) == other


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"level": 3}, "`level` must be 1 or 2"),
        ({"level": "1"}, "must be a whole number"),
        ({"rules": []}, "`rules` is empty"),
        ({"sizes": [["a", 1, 2]]}, "must be lists of pairs"),
        ({"sizes": [["a", "1"], ["b", 2]]}, "must be whole numbers"),
        ({"everyone": [1]}, "must be texts"),
        ({"more": 1}, "'more' of a"),
        ({"sizes": [["b", 80], ["a", 80]]}, "must be those of the contract, in order"),
    ],
)
def test_an_alignment_that_is_not_valid_is_no_part_of_a_contract(world, changes, reason):
    content = contract_of(world, alignment=AGREED).as_json()
    content["alignment"] = {**content["alignment"], **changes}
    with pytest.raises(ValueError, match=reason):
        Contract.from_json(content)
