import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import federate
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.variables import Family, Rows, Variable


@st.composite
def data_and_families(draw):
    records = draw(st.integers(10, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    variables, codes = {}, {}
    for i in range(draw(st.integers(2, 6))):
        states = tuple(f"s{k}" for k in range(draw(st.integers(2, 4))))
        variable = Variable(f"v{i}", states, draw(st.booleans()))
        variables[variable.name] = variable
        codes[variable.name] = generator.integers(0, variable.codes, records).astype(np.uint8)
    names = list(variables)
    families = []
    for order in draw(st.lists(st.permutations(names), min_size=1, max_size=5)):
        size = draw(st.integers(1, min(4, len(names))))
        families.append(Family(order[0], tuple(order[1:size])))
    return SiteData(variables, codes), families


@settings(max_examples=60, deadline=None)
@given(data_and_families(), st.integers(1, 3), st.booleans())
def test_secure_tables_equal_plain_ones(found, sites, missing):
    data, families = found
    plain = PlainCounter(data)
    with federate(split_columns(data, min(sites, len(data.variables)))) as federation:
        secure = SecureCounter.of(federation, order=list(data.variables))
        assert list(secure.variables.items()) == list(plain.variables.items())
        assert secure.records == plain.records
        wanted = plain.tables(families, missing=missing)
        got = secure.tables(families, missing=missing)
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours.dtype == theirs.dtype == np.int64
        assert ours.flags.c_contiguous and theirs.flags.c_contiguous
        assert np.array_equal(ours, theirs)


@pytest.fixture
def pair(alarm_data):
    """A plain and a secure counter of five columns."""
    data = alarm_data.take(list(alarm_data.variables)[:5])
    with federate(split_columns(data, 2)) as federation:
        yield (
            PlainCounter(data),
            SecureCounter.of(federation, order=list(data.variables)),
            federation,
        )


def test_an_opened_table_is_not_asked_again(pair):
    _, secure, federation = pair
    a, b, c, *_ = secure.variables
    first = secure.tables([Family(a, (b, c))])[0]
    rounds = federation.traffic.rounds
    again = secure.tables([Family(c, (a, b)), Family(a, (b, c))])
    assert federation.traffic.rounds == rounds and secure.calls == 1
    assert np.array_equal(again[0], first.transpose(2, 0, 1))
    first[:] = 0
    assert again[1].any(), "a caller's changes do not reach the counter"


def test_one_call_for_many_families(pair):
    plain, secure, _ = pair
    families = [Family(a, (b,)) for a in secure.variables for b in secure.variables if a != b]
    got = secure.tables(families)
    assert secure.calls == secure.queries == 1
    for table, wanted in zip(got, plain.tables(families), strict=True):
        assert np.array_equal(table, wanted)


def test_no_families_no_rounds(pair):
    _, secure, federation = pair
    rounds = federation.traffic.rounds
    assert secure.tables([]) == []
    assert federation.traffic.rounds == rounds


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (Family("nobody"), "no variable 'nobody'"),
        (Family("CVP", ("nobody",)), "no variable 'nobody'"),
        (Family("CVP", ("CVP",)), "twice"),
        (Family("CVP", ("PCWP", "PCWP")), "twice"),
    ],
)
def test_impossible_families(pair, which, family, reason):
    names = {"CVP": list(pair[0].variables)[0], "PCWP": list(pair[0].variables)[1]}
    family = Family(
        names.get(family.child, family.child), tuple(names.get(p, p) for p in family.parents)
    )
    with pytest.raises(ValueError, match=reason):
        pair[which].tables([family])


@pytest.mark.parametrize("which", [0, 1])
def test_rows_beyond_the_records(pair, which):
    with pytest.raises(ValueError, match="2000 records"):
        pair[which].tables([Family(next(iter(pair[0].variables)))], rows=Rows(0, 0, 2001))


def test_a_table_too_large_is_named():
    states = tuple(map(str, range(60)))
    data = SiteData(
        {f"v{i}": Variable(f"v{i}", states) for i in range(4)},
        {f"v{i}": np.zeros(20, np.uint8) for i in range(4)},
    )
    with pytest.raises(ValueError, match="v0, v1, v2, v3 has 12960000 cells"):
        PlainCounter(data).tables([Family("v0", ("v1", "v2", "v3"))])


def test_rows_are_chosen_by_the_sites(alarm_data):
    """Two federations draw other samples; the parts of a split add up to the whole."""
    data = alarm_data.take(list(alarm_data.variables)[:6])
    first, second = list(data.variables)[:2]
    family = Family(first, (second,))
    samples = []
    for _ in range(2):
        with federate(split_columns(data, 3)) as federation:
            counter = SecureCounter.of(federation, order=list(data.variables), block_rows=256)
            halves = [
                counter.tables([family], rows=Rows(0, *r))[0] for r in ((0, 900), (900, None))
            ]
            other = counter.tables([family], rows=Rows(1, 0, 900))[0]
            whole = counter.tables([family])[0]
        assert halves[0].sum() == 900 and np.array_equal(sum(halves), whole)
        assert not np.array_equal(other, halves[0])
        samples.append(halves[0])
    assert not np.array_equal(*samples)
    plain = PlainCounter(data)
    halves = [plain.tables([family], rows=Rows(0, *r))[0] for r in ((0, 900), (900, None))]
    assert np.array_equal(sum(halves), plain.tables([family])[0])


def test_extensions_over_a_sample(alarm_data):
    """All families of four columns over a sample; their margins agree with the sample's pairs."""
    data = alarm_data.take(list(alarm_data.variables)[:4])
    a, b, c, d = data.variables
    with federate(split_columns(data, 3)) as federation:
        counter = SecureCounter.of(federation, block_rows=128)
        rows = Rows(0, 0, 1000)
        whole, part = counter.tables([Family(a, (b, c, d)), Family(a, (b,))], rows=rows)
    assert whole.sum() == 1000
    assert np.array_equal(whole.sum(axis=(2, 3)), part)


def test_a_small_budget_asks_in_groups_and_finds_the_same(alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:8])
    names = list(data.variables)
    families = [Family(a, (b, c)) for a, b, c in zip(names, names[1:], names[2:], strict=False)]
    with federate(split_columns(data, 3), memory_budget=1_500_000) as federation:
        assert all(role.column_memory < 200_000 for role in federation.roles.values())  # in a file
        counter = SecureCounter.of(federation, memory=200_000)
        got = counter.tables(families)
    assert 1 < counter.queries <= len(families) and counter.calls == 1
    for table, wanted in zip(got, PlainCounter(data).tables(families), strict=True):
        assert np.array_equal(table, wanted)


def test_sites_that_do_not_fit_together(alarm_data):
    names = list(alarm_data.variables)
    a, b = alarm_data.take(names[:2]), alarm_data.take(names[1:3])
    with (
        federate({"a": a, "b": b}) as federation,
        pytest.raises(ValueError, match="at two sites, a and b"),
    ):
        SecureCounter.of(federation)
    shorter = SiteData(
        {names[2]: alarm_data.variables[names[2]]}, {names[2]: alarm_data.codes[names[2]][:-1]}
    )
    with federate({"a": a, "c": shorter}) as federation:
        with pytest.raises(ValueError, match="a 2000, c 1999"):
            SecureCounter.of(federation)
    with federate({"a": a}) as federation, pytest.raises(ValueError, match="does not fit"):
        SecureCounter.of(federation, order=names[:1])


def test_a_study_is_opened_before_it_is_counted_and_a_new_counter_sends_nothing(alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:3])
    with federate(split_columns(data, 2)) as federation:
        study = open_study(federation.session, federation.sites, federation.dealer)
        messages = federation.traffic.messages
        counter = SecureCounter(study)
        assert messages and federation.traffic.messages == messages
        assert (counter.study, counter.records) == (study.study, data.records)
        assert counter.most_variables == study.most_variables
        asked = [Family(name) for name in data.variables]
        tables = counter.tables(asked)
        again = SecureCounter(study).tables(asked)  # a counter of its own asks again
    for table, other, true in zip(tables, again, PlainCounter(data).tables(asked), strict=True):
        assert np.array_equal(table, true) and np.array_equal(other, true)


def test_a_table_that_fits_the_memory_in_no_way_is_named_before_anything_is_opened(alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:4])
    a, b, c, _ = data.variables
    with federate(split_columns(data, 3)) as federation:
        counter = SecureCounter.of(federation, memory=1000)
        with pytest.raises(ValueError, match=f"the table of {a}, {b}, {c} takes .* bytes"):
            counter.tables([Family(a, (b, c)), Family(a)])
        assert not counter.ledger.tables


def test_one_prefix_with_many_cells_is_asked_in_groups(monkeypatch, alarm_data):
    monkeypatch.setattr("vertibayes_protocols.queries.tables.counting.MOST_CELLS", 12)
    data = alarm_data.take(list(alarm_data.variables)[:6])
    first, *others = data.variables
    families = [Family(first, (name,)) for name in others]
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation)
        got = counter.tables(families)
    assert counter.queries > 1
    for table, wanted in zip(got, PlainCounter(data).tables(families), strict=True):
        assert np.array_equal(table, wanted)


def test_places_may_be_numpys_integers_and_all_records_are_all(alarm_data):
    data = alarm_data.take(list(alarm_data.variables)[:2])
    family = Family(next(iter(data.variables)))
    with federate(split_columns(data, 2)) as federation:
        counter = SecureCounter.of(federation)
        some = counter.tables([family], rows=Rows(np.int64(1), np.int64(0), np.int64(500)))
        assert some[0].sum() == 500
        everything = counter.tables([family])
        calls = counter.calls
        assert np.array_equal(counter.tables([family], rows=Rows(5))[0], everything[0])
        assert counter.calls == calls
        with pytest.raises(ValueError, match="does not lie within"):
            counter.tables([family], rows=Rows(2**63))
        assert counter.tables([family]), "the session goes on"


def test_many_variables_with_gaps_need_no_more_cells_than_they_have():
    variables = {f"v{i}": Variable(f"v{i}", ("0", "1"), missing=True) for i in range(20)}
    data = SiteData(variables, {name: np.array([0, 1, 2] * 5, np.uint8) for name in variables})
    (table,) = PlainCounter(data).tables([Family("v0", tuple(list(variables)[1:]))])
    assert table.sum() == 10 and table.size == 2**20


@pytest.mark.parametrize(
    "codes", [np.array([-1, 0, 1]), np.array([0.0, 1.0]), np.zeros((2, 2), np.uint8)]
)
def test_codes_of_another_type_are_refused(codes):
    with pytest.raises(ValueError, match="uint8 or uint16"):
        SiteData({"v": Variable("v", ("0", "1"))}, {"v": codes})


def test_a_table_with_missing_cells_tells_that_without(gaps):
    family = Family(*list(gaps.variables)[:1], tuple(list(gaps.variables)[1:3]))
    with federate(split_columns(gaps, 3)) as federation:
        counter = SecureCounter.of(federation, order=list(gaps.variables))
        counter.tables([family], missing=True)
        (table,) = counter.tables([family])
        assert counter.calls == 1
    assert np.array_equal(table, PlainCounter(gaps).tables([family])[0])
