"""The golden record of runs of approved studies: what is not the contract's, what runs use up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.protocols.golden import data, queries
from tests.protocols.golden.breaks import OF_CONTRACT, OF_MEMORY, OF_POLICY, OF_QUERY, Break
from tests.protocols.golden.looks import by_words, look, refusals
from tests.protocols.golden.queries import BEGIN, IN_A_RUN, QUERIES
from tests.protocols.golden.record import between, effects, opened, world_of, worlds
from tests.protocols.golden.worlds import AGREED, Crash, outcome
from vertibayes_protocols.policy import ALLOW_ALL
from vertibayes_protocols.queries import Begin

APPROVED_ALONE = replace(ALLOW_ALL, free_tables=False)
STEPS = "choose", "release"


def approved(world, scene, name, **changes):
    """Return the contract of a query, which all owners approve; its session has begun nothing."""
    if name in STEPS:
        contract, approval = queries.contract_of(world, steps=queries.steps_of, **changes)
    else:
        asked = []
        if scene == "study":
            asked = [make(opened(world, "").analyst) for make in _opening()]
        asked.append(_free(name, scene))
        contract, approval = queries.contract_of(world, *asked, **changes)
    world.approve({contract.digest: approval})
    return contract


def _opening():
    """Return the makers of the queries that open a study."""
    return queries.meet, queries.describe, queries.commit


def _free(name, scene):
    """Return a query as an analyst makes it before a run begins, to be declared."""
    with worlds(scene) as world:
        return QUERIES[name].query(opened(world, scene).analyst)


def begun(world, scene, contract, name=data.STUDY, study=b""):
    """Begin a run in a new session, and open its study if the scene has one."""
    session = opened(world, "")
    begin(session, scene, contract, name, study)
    return session


def begin(session, scene, contract, name=data.STUDY, study=b""):
    """Begin a run in a session, and open its study if the scene has one."""
    session.ask(Begin.of(contract, study=study))
    if scene == "study":
        session.ask(queries.meet(session.analyst))
        session.ask(queries.describe(session.analyst))
        session.ask(queries.commit(session.analyst, name))


def run_of(name):
    """Return what sites refuse, charge and note in a run whose contract has a query."""
    asked = QUERIES[name]
    breaks = OF_CONTRACT | OF_POLICY | OF_QUERY
    breaks |= {what: Break(content=content) for what, content in IN_A_RUN[name].items()}
    with worlds(asked.scene, policy=APPROVED_ALONE) as world:
        contract = approved(world, asked.scene, name)
        session = begun(world, asked.scene, contract)
        if name == "release":
            session.ask(QUERIES["choose"].query(session.analyst))
        said = refusals(session, asked, breaks)
        for what in OF_POLICY | OF_QUERY:  # the words are those outside of runs
            said["words"].pop(what, None)
        found = {"first look": said}
        found["answered"] = effects(session, asked.query(session.analyst))
        found["asked once more"] = by_words(look(session, asked))
        found["other kinds"] = others(session, asked.scene, name)
        if name == "release":
            session.session.close()
            session = begun(world, asked.scene, contract, study=data.STUDY)
            again = queries.release(session.analyst, again=True)
            found["given again"] = effects(session, again)
        found["another run"] = by_words(look(opened(world, ""), BEGIN, contract=contract))
    return found


def exact_tables():
    """Return what sites say to exact tables without a rule, in a run whose contract has them."""
    with worlds("study", policy=APPROVED_ALONE) as world:
        session = begun(world, "study", approved(world, "study", "tables"))
        asked = QUERIES["tables"]
        is_allowed = Break({"free_tables": True})
        return [by_words(look(session, asked, *breaks)) for breaks in ((), (is_allowed,))]


def others(session, scene, name):
    """Return what sites say to the other kinds of a scene, after the contract's query."""
    kinds = {a.make: n for n, a in reversed(QUERIES.items()) if a.scene == scene and n != name}
    return {n: by_words(look(session, QUERIES[n])) for n in sorted(kinds.values())}


# ---- Begin ---------------------------------------------------------------------------------------


def first_look_at_a_run():
    """Return what sites refuse when a run begins, and what they note."""
    with worlds("study", policy=APPROVED_ALONE) as world:
        contract = approved(world, "study", "release")
        session = opened(world, "")
        breaks = OF_POLICY | OF_MEMORY | OF_QUERY | OF_CONTRACT
        breaks["a contract that nobody approved"] = Break(
            content={"contract": replace(contract, options={"most": 2})}
        )
        found = {"first look": refusals(session, BEGIN, breaks, contract=contract)}
        for what in ("analyst", "dealer"):
            other = approved(world, "study", "release", **{what: (what, bytes(range(32)))})
            found[f"another {what}"] = by_words(look(opened(world, ""), BEGIN, contract=other))
        found["answered"] = effects(session, Begin.of(contract))
    return found


# ---- another session, and a crash ----------------------------------------------------------------


def two_runs(same):
    """Return how a choice ends while another session chooses: of the same contract, or another."""
    with worlds("study", policy=replace(APPROVED_ALONE, most_choice_bits=2)) as world:
        first = approved(world, "study", "choose")
        second, approval = queries.contract_of(world, steps=queries.steps_of, options={"a": 1})
        for role in world.roles.values():
            known = role.approvals
            role.approvals = lambda d, known=known: approval if d == second.digest else known(d)
        one = begun(world, "study", first)
        if same:
            return by_words(look(opened(world, ""), BEGIN, contract=first))
        two = begun(world, "study", second, b"study two")
        query = one.query = QUERIES["choose"].query(one.analyst)
        other = QUERIES["choose"].query(two.analyst)
        before = {site: one.state(site) for site in world.sites}
        ends = []
        hooks = {AGREED: lambda: ends.append(outcome(lambda: two.ask(other)))}
        ends.insert(0, outcome(lambda: one.ask(query, hooks)))
        found = between(before, {site: one.state(site) for site in world.sites})
    return {"the other session": ends[1], "this session": ends[0], **found}


def broken_run(name, point):
    """Return what sites say and keep when a run that broke at a point of a step is resumed."""
    with TemporaryDirectory() as folder:
        world = world_of("study", Path(folder), policy=APPROVED_ALONE)
        contract = approved(world, "study", name)
        session = begun(world, "study", contract, study=data.STUDY)
        if name == "release":
            session.ask(QUERIES["choose"].query(session.analyst))

        def crash():
            if set(session.points[point]) >= set(world.sites):
                raise Crash

        query = QUERIES[name].query(session.analyst)
        assert outcome(lambda: session.ask(query, {point: crash})) == "Crash: "
        world.close()
        world = world_of("study", Path(folder), policy=APPROVED_ALONE)
        contract = approved(world, "study", name)
        session = opened(world, "")
        found = {"begin": effects(session, Begin.of(contract, study=data.STUDY))}
        for make in _opening():
            session.ask(make(session.analyst))
        limits = {
            "most_failed_runs": {"most_failed_runs": 1},
            "most_choice_bits": {"most_choice_bits": 3},
        }
        for rule, policy in limits.items():
            found[rule] = by_words(look(session, QUERIES[name], Break(policy)))
        found["answered"] = effects(session, QUERIES[name].query(session.analyst))
        world.close()
    return found
