import stat
from contextlib import closing

import numpy as np
import pytest

from tests.protocols.small import data_of, packets
from tests.protocols.test_commit import masked_bodies
from tests.randomness import SeededRandomness
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.parameters.cpt import fit_cpts
from vertibayes.structure.learners import k2
from vertibayes.study_files import MAGIC, TableFile
from vertibayes_mpc.randomness import SystemRandomness
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.federation import federate
from vertibayes_protocols.queries import Tables
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.variables import Family, Rows

DATA = data_of(a="xy", b="z", c="w")
SOME = [Family("x", ("z",)), Family("w", ("y", "x"))]
HALF = Rows(1, 0, 20)


@pytest.fixture
def sites(tmp_path):
    """A federation of the sites with their memories in files: each call is another session."""

    def start(data=DATA, **options):
        memories = {site: SiteMemory(tmp_path / f"{site}.memory") for site in data}
        federation = federate(data, memories=memories, **options)
        started.append((federation, memories))
        return federation

    def end():
        for federation, memories in started:
            federation.session.close()
            for memory in memories.values():
                memory.close()
        started.clear()

    started = []
    start.end = end
    yield start
    end()


def tables_asked(monkeypatch, sites, path, families, **options):
    """Count families in a session of its own; return the tables, and which were asked for."""
    with packets(monkeypatch) as seen, closing(TableFile(path)) as kept:
        counter = SecureCounter.of(sites(), kept=kept)
        found = counter.tables(families, **options)
        ledger = len(counter.ledger.tables)
    sites.end()
    queries = {id(s.message): s.message for s, _ in seen if isinstance(s.message, Tables)}
    members = [
        {query.variables[i] for i in (*prefix, last)}
        for query in queries.values()
        for prefix, lasts in zip(query.prefixes, query.lasts, strict=True)
        for last in lasts
    ]
    return found, members, ledger


@pytest.mark.parametrize("rows", [Rows(), HALF])
def test_what_was_opened_is_not_asked_again(monkeypatch, sites, tmp_path, rows):
    path = tmp_path / "study" / "tables"
    first, members, _ = tables_asked(monkeypatch, sites, path, SOME, rows=rows)
    assert members == [{"x", "z"}, {"x", "y", "w"}]
    again, members, ledger = tables_asked(monkeypatch, sites, path, SOME, rows=rows)
    assert not members and ledger == 2
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    more, members, ledger = tables_asked(
        monkeypatch, sites, path, [*SOME, Family("z", ("y",))], rows=rows
    )
    assert members == [{"y", "z"}] and ledger == 3
    if rows == Rows():
        pooled = {n: c for site in DATA.values() for n, c in site.codes.items()}
        variables = {n: v for site in DATA.values() for n, v in site.variables.items()}
        plain = PlainCounter(SiteData(variables, pooled)).tables([*SOME, Family("z", ("y",))])
        assert all(np.array_equal(a, b) for a, b in zip(more, plain, strict=True))


class Crash(Exception):
    pass


def test_a_run_that_crashed_goes_on_to_the_identical_model(monkeypatch, sites, tmp_path):
    whole = SecureCounter.of(sites())
    structure = k2(whole)
    wanted = fit_cpts(whole, structure)
    sites.end()
    calls = whole.calls
    with closing(TableFile(tmp_path / "tables")) as kept:
        counter = SecureCounter.of(sites(), kept=kept)

        def crash(stage, done, steps):
            if counter.calls == 2:
                raise Crash

        with pytest.raises(Crash):
            k2(counter, progress=crash)
        assert counter.calls == 2
    sites.end()
    with closing(TableFile(tmp_path / "tables")) as kept:
        again = SecureCounter.of(sites(), kept=kept)
        found = fit_cpts(again, k2(again))
    assert again.study.id == counter.study.id
    assert found.structure == structure and again.calls == calls - 2
    assert all(np.array_equal(found.cpts[n], wanted.cpts[n]) for n in wanted.cpts)
    assert len(again.ledger.tables) == len(whole.ledger.tables)


def test_a_study_gone_on_with_is_committed_under_new_masks(monkeypatch, sites, tmp_path):
    """Though all keys, and the sites' memories, are those of before."""
    bodies = []
    for _ in range(2):
        with packets(monkeypatch) as seen, closing(TableFile(tmp_path / "tables")) as kept:
            federation = sites(randomness=SeededRandomness())
            for role in federation.roles.values():
                role.randomness = SystemRandomness()
            SecureCounter.of(federation, kept=kept)
        sites.end()
        bodies.append(masked_bodies(seen))
    assert len({body for one in bodies for body in one}) == 6


def test_a_site_that_has_forgotten_the_study_is_found_out(sites, tmp_path):
    with closing(TableFile(tmp_path / "tables")) as kept:
        SecureCounter.of(sites(), kept=kept).tables(SOME, rows=HALF)
    sites.end()
    (tmp_path / "b.memory").unlink()
    with closing(TableFile(tmp_path / "tables")) as kept:
        with pytest.raises(ValueError, match="one of them has lost its memory, or has an older"):
            SecureCounter.of(sites(), kept=kept)


def test_changed_data_are_not_committed_under_the_labels_of_before_a_restart(sites, tmp_path):
    with closing(TableFile(tmp_path / "tables")) as kept:
        SecureCounter.of(sites(), kept=kept)
    sites.end()
    codes = {**DATA["a"].codes, "x": DATA["a"].codes["x"][::-1]}
    changed = {**DATA, "a": SiteData(DATA["a"].variables, codes)}
    with closing(TableFile(tmp_path / "tables")) as kept:
        with pytest.raises(QueryRefusedError, match="'x' has changed since it was committed"):
            SecureCounter.of(sites(changed), kept=kept)


def test_a_study_of_other_variables_is_not_gone_on_with(sites, tmp_path):
    with closing(TableFile(tmp_path / "tables")) as kept:
        SecureCounter.of(sites(), kept=kept, variables=["x", "z", "w"])
    sites.end()
    with closing(TableFile(tmp_path / "tables")) as kept:
        with pytest.raises(ValueError, match="other variables"):
            SecureCounter.of(sites(), kept=kept)


def test_a_study_of_some_variables(sites):
    counter = SecureCounter.of(sites(), variables=["z", "x"], order=["z", "x"])
    assert list(counter.variables) == ["z", "x"] and counter.study.sites == ("a", "b")
    with pytest.raises(ValueError, match="no site shows q, r"):
        SecureCounter.of(federate(DATA), variables=["x", "r", "q"])


# ---- the file ------------------------------------------------------------------------------------


@pytest.fixture
def filled(sites, tmp_path):
    path = tmp_path / "tables"
    with closing(TableFile(path)) as kept:
        SecureCounter.of(sites(), kept=kept).tables(SOME)
    sites.end()
    return path


def test_the_file_is_its_owners_alone(filled):
    assert stat.S_IMODE(filled.stat().st_mode) == 0o600


def test_wherever_a_crash_cuts_the_file_short_what_is_whole_is_kept(filled):
    content = filled.read_bytes()
    with closing(TableFile(filled)) as kept:
        all_tables = kept.tables
    counts = set()
    for end in range(len(content)):
        filled.write_bytes(content[:end])
        with closing(TableFile(filled)) as kept:
            counts.add(len(kept.tables))
            assert all(
                np.array_equal(a.table, b.table) and a[:3] == b[:3]
                for a, b in zip(kept.tables, all_tables, strict=False)
            )
        assert len(filled.read_bytes()) <= end
    assert counts == {0, 1}


def test_a_cut_file_goes_on(filled, monkeypatch, sites):
    filled.write_bytes(filled.read_bytes()[:-1])
    _, members, _ = tables_asked(monkeypatch, sites, filled, SOME)
    assert members == [{"x", "y", "w"}]
    _, members, _ = tables_asked(monkeypatch, sites, filled, SOME)
    assert members == []


def test_a_damaged_byte_is_found(filled):
    content = bytearray(filled.read_bytes())
    content[-40] ^= 1
    filled.write_bytes(content)
    with pytest.raises(ValueError, match=r"tables, byte \d+: damaged"):
        TableFile(filled)


def test_another_file_is_not_taken_for_one_nor_written_to(tmp_path):
    path = tmp_path / "tables"
    path.write_bytes(b"mine")
    with pytest.raises(ValueError, match="not a file of revealed tables"):
        TableFile(path)
    assert path.read_bytes() == b"mine"
    path.write_bytes(MAGIC)
    with closing(TableFile(path)) as kept:
        assert kept.study is None and not kept.tables


def test_two_runs_do_not_write_to_one_file(filled):
    with closing(TableFile(filled)):
        with pytest.raises(ValueError, match="in use by another process"):
            TableFile(filled)
    TableFile(filled).close()
