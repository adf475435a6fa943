"""The golden record: what parties refuse, charge and note for a query of each kind."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.protocols.golden import data, queries
from tests.protocols.golden.breaks import OF_MEMORY, OF_POLICY, OF_QUERY, Break
from tests.protocols.golden.looks import by_words, look, merged, refusals
from tests.protocols.golden.queries import QUERIES, SOME
from tests.protocols.golden.worlds import (
    AGREED,
    FIRST,
    POINTS,
    Crash,
    World,
    changes,
    entries,
    outcome,
)
from vertibayes_protocols.federation import DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.variables import Rows

EARLIER = Rows(9, 0, 20)  # a record set that a study has answered for


def world_of(scene, folder, **options):
    """Return the sites of a scene."""
    if scene == "records":
        held, batches = data.records()
        return World(held, folder, batches, **options)
    return World(data.LISTS.get(scene) or data.columns(), folder, **options)


def opened(world, scene, name=data.STUDY, earlier=False):
    """Begin a session, with a study if the scene has one."""
    session = world.session()
    if scene == "study":
        session.ask(queries.commit(session.analyst, name))
        if earlier:
            session.ask(queries.tables(session.analyst, rows=EARLIER))
    return session


@contextmanager
def worlds(scene, **options):
    """Yield a world of a scene whose memories are in a temporary folder, and the folder."""
    with TemporaryDirectory() as folder:
        world = world_of(scene, Path(folder), **options)
        try:
            yield world
        finally:
            world.close()


# ---- the first look ------------------------------------------------------------------------------


def first_look(asked):
    """Return what each party refuses at the first look."""
    breaks = OF_POLICY | OF_MEMORY | OF_QUERY
    breaks |= {name: Break(content=content) for name, content in asked.others.items()}
    with worlds(asked.scene) as world:
        return refusals(opened(world, asked.scene, earlier=True), asked, breaks)


# ---- what is charged and noted -------------------------------------------------------------------


def effects(session, query):
    """Ask a query; return what sites keep and note at which point, and what the analyst notes.

    Each text is followed by the sites that have it; {text: "a, b"}.
    """
    session.query = query
    before = {site: session.state(site) for site in session.world.sites}
    noted = Counter(entries(session.analyst.ledger))
    result = outcome(lambda: session.ask(query))
    found = {} if result == "answered" else {"result": result}
    for point in POINTS:
        at = session.points.get(point, {})
        found[point] = between(before, at)
        before |= at
    found["analyst"] = _counted(Counter(entries(session.analyst.ledger)) - noted)
    return {name: entry for name, entry in found.items() if entry}


def between(before, after):
    """Return what has changed in memories and ledgers, each with the sites where it has."""
    memory, ledger = {}, {}
    for site in sorted(after):
        (kept, noted), (kept_after, noted_after) = before[site], after[site]
        for text in changes(kept, kept_after):
            memory.setdefault(text, []).append(site)
        for text in _counted(Counter(noted_after) - Counter(noted)):
            ledger.setdefault(text, []).append(site)
    found = {"memory": _joined(memory), "ledger": _joined(ledger)}
    return {name: entry for name, entry in found.items() if entry}


def _joined(found):
    return {text: ", ".join(sites) for text, sites in found.items()}


def _counted(entries_):
    """Return entries, each once; those that were noted more often say so."""
    return [text + f" ({n} times)" * (n > 1) for text, n in entries_.items()]


def answered(asked):
    """Return what a query charges and notes, and the same query once more."""
    with worlds(asked.scene) as world:
        session = opened(world, asked.scene)
        first = effects(session, asked.query(session.analyst))
        second = effects(session, asked.query(session.analyst))
    return first | {"once more": second}


# ---- another session, and a crash, between agreement and first byte ------------------------------

LIMITS = {
    "most_epsilon": {"most_epsilon": 0.6, "most_delta": 1.2e-5},
    "most_scores": {"most_scores": data.RECORDS},
    "most_released_tables": {"most_released_tables": 1},
    "most_released_cells": {"most_released_cells": 15},
    "most_row_sets": {"most_row_sets": 1},
    "fewest_records": {"fewest_records": 15},
    "most_failed_meets": {"most_failed_meets": 1},
}
ONE_TABLE, OTHER_ROWS, OTHER_STUDY = (
    {"asked": ("xz",)},
    {"rows": Rows(2, 0, 20)},
    {"name": b"study two"},
)
SIDE_BY_SIDE = (  # rule, query, content of it, of the other session's query, that query
    ("most_epsilon", "release, laplace", {}, {}),
    ("most_epsilon", "release, gaussian", {}, {}),
    ("most_epsilon", "score table, laplace", {}, {}),
    ("most_epsilon", "publish", {}, {}),
    ("most_epsilon", "report", {}, {}),
    ("most_epsilon", "sums, shares of noise", {}, {}),
    ("most_epsilon", "updates", {}, {}),
    ("most_epsilon", "updates, gaussian", {}, {}),
    ("most_scores", "predict", {}, {}),
    ("most_scores", "scores", {}, {}),
    ("most_released_tables", "release", ONE_TABLE, ONE_TABLE),
    ("most_released_tables", "score table", {}, {}),
    ("most_released_cells", "release", ONE_TABLE, ONE_TABLE),
    ("most_released_cells", "score table", {}, {}),
    ("most_row_sets", "tables", {}, OTHER_ROWS),
    ("most_row_sets", "choose", {}, OTHER_ROWS),
    ("most_row_sets", "score table", {}, OTHER_ROWS),
    ("fewest_records", "tables", {"rows": SOME}, OTHER_ROWS),
    ("fewest_records", "choose", {"rows": SOME}, OTHER_ROWS),
    ("fewest_records", "score table", {"rows": SOME}, OTHER_ROWS),
    ("most_failed_meets", "meet with lists", {}, {}),
    ("most_alignments", "align", {}, OTHER_STUDY),
    ("most_alignments", "align at level 2", {}, OTHER_STUDY),
    ("the number", "sums", {}, {}),
    ("the number", "updates", {}, {}),
    ("the number", "consensus", {}, {}),
    ("the study runs", "commit", {}, {}),
    ("the study runs", "align", {}, {}),
    ("most_epsilon", "publish", {}, {}, "release, laplace"),
    ("most_epsilon", "release, laplace", {}, {}, "publish"),
    ("most_epsilon", "report", {}, {}, "updates"),
    ("most_epsilon", "sums, shares of noise", {}, {}, "report"),
    ("most_scores", "predict", {}, {}, "scores"),
    ("most_scores", "scores", {}, {}, "predict"),
    ("most_released_cells", "score table", {}, ONE_TABLE, "release"),
    ("most_released_cells", "release", ONE_TABLE, {}, "score table"),
    ("most_row_sets", "tables", {}, OTHER_ROWS, "choose"),
    ("fewest_records", "score table", {"rows": SOME}, OTHER_ROWS, "tables"),
    ("the number", "updates", {}, {}, "consensus"),
    ("the number", "consensus", {}, {}, "sums"),
)  # fmt: skip
"""Of each rule: a query that is agreed to, while another session uses up what is left for one."""
LATE = (  # of queries that are given after other sites have sent something
    ("most_epsilon", "release, laplace", {}, {}),
    ("most_released_cells", "release", ONE_TABLE, ONE_TABLE),
)


def limited(world, rule):
    """Have all parties of a world allow one query of a rule."""
    for role in (*world.roles.values(), world.dealer):
        role.policy = replace(role.policy, **LIMITS.get(rule, {}))
        role.limits = replace(data.LIMITS, most_alignments=1)


def side_by_side(rule, name, content, others, of="", point=AGREED):
    """Return how a query ends if another is answered when its sites have reached a point."""
    asked, second = QUERIES[name], QUERIES[of or name]
    scene = max(asked.scene, second.scene)  # a study has what sites with columns have
    with worlds(scene) as world:
        limited(world, rule)
        one, two = opened(world, scene), opened(world, scene, b"study two")
        made = {one: lambda: asked.query(one.analyst, **content)}
        made[two] = lambda: second.query(two.analyst, **others)
        # The later number is refused by no other rule: numbers are checked before budgets.
        order = made if rule == "the number" else reversed(made)
        asks = {session: made[session]() for session in order}
        query, other = asks[one], asks[two]
        one.query = query
        before = {site: one.state(site) for site in world.sites}
        ends = []

        def interrupt():
            if not ends and set(one.points[point]) >= set(one.asked) & set(world.sites):
                ends.append(outcome(lambda: two.ask(other)))

        end = outcome(lambda: one.ask(query, {point: interrupt}))
        found = between(before, {site: one.state(site) for site in world.sites})
    ledger = {text: who for text, who in found["ledger"].items() if text.startswith("refused")}
    found = {"the other session": ends[0], "this session": end, **found, "ledger": ledger}
    return {name: entry for name, entry in found.items() if entry}


def after_crashes(rule, name, content, others):
    """Return what the sites say after a crash at each point of a query."""
    return {
        point: _after_crash(rule, QUERIES[name], point, content, others)
        for point in (AGREED, FIRST)
    }


def _after_crash(rule, asked, point, content, others):
    with TemporaryDirectory() as folder:
        world = world_of(asked.scene, Path(folder))
        limited(world, rule)
        session = opened(world, asked.scene)

        def crash():
            if set(session.points[point]) >= set(session.asked) & set(world.sites):
                raise Crash

        query = asked.query(session.analyst, **content)
        ended = outcome(lambda: session.ask(query, {point: crash}))
        assert ended == "Crash: ", ended
        world.close()
        world = world_of(asked.scene, Path(folder))
        limited(world, rule)
        found = by_words(
            look(opened(world, asked.scene), asked._replace(content={**asked.content, **others}))
        )
        world.close()
    return found


# ---- data that have changed ----------------------------------------------------------------------


def changed_data(asked):
    """Return what sites say whose columns have changed since an earlier study, and after what."""
    with TemporaryDirectory() as folder:
        world = world_of(asked.scene, Path(folder))
        session = opened(world, asked.scene)
        session.ask(queries.tables(session.analyst))
        world.close()
        world = World(data.columns("xz"), Path(folder))
        session = opened(world, asked.scene, b"study two")
        said = look(session, asked)
        broken = {name: look(session, asked, each) for name, each in OF_POLICY.items()}
        world.close()
    before = {
        party: [n for n, answers in broken.items() if answers[party] and answers[party] != words]
        for party, words in said.items() if words
    }  # fmt: skip
    return {"words": by_words(said), "named before": merged(before)}


# ---- people --------------------------------------------------------------------------------------


def other_people(first, then):
    """Return what sites say in a study whose people, or their values, are a few others.

    first, then: the level of the alignment and the data of each study.
    """
    asked, found = QUERIES["tables"]._replace(content=ONE_TABLE), {}
    with TemporaryDirectory() as folder:
        for name, (level, held) in {"study one": first, "study two": then}.items():
            world = World(data.PEOPLE[held], Path(folder))
            for role in world.roles.values():
                role.policy = replace(role.policy, fewest_records=5)
            session = world.session()
            agreed = queries.alignment(level, fewest=5)
            parties = session.session, world.sites, DEALER
            opening = partial(open_study, *parties, study=name.encode(), alignment=agreed)
            found = {"opening": outcome(opening)}
            if found["opening"] == "answered":
                found["first look"] = by_words(look(session, asked))
                found["answered"] = effects(session, asked.query(session.analyst))
            world.close()
    return found
