import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertibayes.bif import (
    NODES,
    STATES,
    XML_NAMES,
    encode_nodes,
    parse_xmlbif,
    write_bif,
    write_xmlbif,
)
from vertibayes.dag import Structure
from vertibayes.network import Network, from_pgmpy, read_bif
from vertibayes_protocols.variables import Variable

NAMES = [
    "plain", "with space", "(1.5,2]", "{braces}", "comma,", 'quote"', "it's", "50%", "%20",
    "_under", "__two", "1", "-3.5", "", " ", "é", "日本", "😀", "network", "Variable", "variable",
    "probability", "property", "type", "discrete", "default", "TABLE", "table", "Ab", "aB", "AB",
    "ab", "a|b", "a;b", "[x]", "<5", ">=10", "a/b", "\\", "a\tb", "a\nb", "x" * 200, "//c",
    "/*c*/", "_x0041_", "_x00e9_", "a_x0041(", "_x_", "_", "__", "_1.5", "__1.5", "_table",
    "table5", "mytable-x", "defaulted", "default1", "(table.5", "timetable", "None",
    "nan", "inf", "1e5", "TRUE", "#", "@", "a=b", "~",
]  # fmt: skip


# What users call their columns and values: no reader breaks on them, so they stay as they are.
PLAIN_STATES = [
    "0", "1", "-1", "+1", "007", "12345678901234567890", "yes", "Yes", "YES", "le_82.96", "le_-5",
    "gt_90", "eq_0", "lt_0", "from_82.96_to_90", "from_-5_to_-3", "18_to_64.5",
    "_0", "a-b", "a.b", "a%", "a?",
    "nan", "None", "True", "Self-emp-not-inc", "Table", "1a", "x_", "United-States", "_x",
]  # fmt: skip
PLAIN_NODES = [
    "age", "education-num", "hours.per.week", "A1", "_id", "x_1", "Variable", "timetable", "type_",
    "x%", "BMI",
]  # fmt: skip
# Only pyAgrum's BIF reader breaks on these; it takes them in XMLBIF.
MARKED = ["82.96_to_90", "-5_to_-3", "1.5", "-", "5e_x", "10-19", "table", "", ".5"]


def awkward():
    """A network all of whose nodes and states have awkward names."""
    generator = np.random.default_rng(1)
    names = [*NAMES]
    variables = {
        n: Variable(n, tuple(NAMES[(i + k) % len(NAMES)] for k in range(2 + i % 3)))
        for i, n in enumerate(names)
    }
    parents = {n: tuple(names[max(i - 1 - (i % 3 == 0), 0) : i]) for i, n in enumerate(names)}
    cpts = {}
    for n in names:
        shape = [len(variables[m].states) for m in (n, *parents[n])]
        cpt = generator.random(shape) ** 8
        cpts[n] = cpt / cpt.sum(axis=0)
    return Network(Structure(parents), variables, cpts)


def plain():
    """A network all of whose names stay as they are."""
    size = len(PLAIN_NODES)
    variables = {
        node: Variable(node, tuple(PLAIN_STATES[i::size])) for i, node in enumerate(PLAIN_NODES)
    }
    parents = {node: tuple(PLAIN_NODES[:i][-1:]) for i, node in enumerate(PLAIN_NODES)}
    cpts = {}
    for node in PLAIN_NODES:
        shape = [len(variables[name].states) for name in (node, *parents[node])]
        cpts[node] = np.full(shape, 1 / shape[0])
    return Network(Structure(parents), variables, cpts)


def assert_equal(one, other):
    assert one.structure == other.structure
    assert dict(one.variables) == dict(other.variables)
    for node in other.structure.nodes:
        assert np.array_equal(one.cpts[node], other.cpts[node])


@pytest.mark.parametrize("network", [awkward(), plain()], ids=["awkward", "plain"])
def test_both_formats_are_read_back_to_the_same_model(network):
    assert_equal(read_bif(write_bif(network)), network)
    assert_equal(parse_xmlbif(write_xmlbif(network)), network)


def test_pgmpy_reads_the_same_model(tmp_path):
    from pgmpy.readwrite import BIFReader

    network, path = awkward(), tmp_path / "model.bif"
    path.write_text(write_bif(network), encoding="utf-8")
    read = from_pgmpy(BIFReader(str(path)).get_model())
    assert {
        NODES.decode(n): tuple(map(NODES.decode, p)) for n, p in read.structure.parents.items()
    } == dict(network.structure.parents)
    codes = encode_nodes(network.structure.nodes)
    for node, code in codes.items():
        states = tuple(map(STATES.decode, read.variables[code].states))
        assert states == network.variables[node].states
        assert np.array_equal(read.cpts[code], network.cpts[node])


def test_pyagrum_reads_the_same_model(tmp_path):
    import pyagrum as gum

    network, path = awkward(), tmp_path / "model.bif"
    path.write_text(write_bif(network), encoding="utf-8")
    read = gum.loadBN(str(path))
    codes = encode_nodes(network.structure.nodes)
    for node, parents in network.structure.parents.items():
        assert_pyagrum_has(read, network, node, codes)
        assert {NODES.decode(n) for n in read.cpt(codes[node]).names[1:]} == set(parents)


def assert_pyagrum_has(read, network, node, codes, decode=STATES.decode):
    parents = network.structure.parents[node]
    labels = read.variable(codes[node]).labels()
    assert tuple(map(decode, labels)) == network.variables[node].states
    values = read.cpt(codes[node]).reorganize([codes[n] for n in (node, *parents)]).toarray()
    wanted = network.cpts[node].transpose(range(len(parents), -1, -1))
    assert values == pytest.approx(wanted, abs=1e-7)  # pyAgrum reads with 7 digits or so


def test_people_read_escaped_names_in_properties_and_plain_ones_as_they_are():
    twice = Variable("a;b", ("<7.5%", "yes"))
    text = write_bif(Network(Structure({"a;b": ()}), {"a;b": twice}, {"a;b": np.array([0.5, 0.5])}))
    assert '  property name = "a\\u003bb";\n  property states = "<7.5%", "yes";\n' in text
    assert "property" not in write_bif(plain())


def test_objects_of_both_libraries_have_the_users_own_names():
    network = read_bif(write_bif(awkward()))
    assert_equal(from_pgmpy(network.to_pgmpy()), network)
    held = network.to_pyagrum()
    codes = {name: name for name in network.structure.nodes}
    for node in codes:
        assert_pyagrum_has(held, network, node, codes, str)


def test_plain_names_are_those_of_the_user_in_both_readers(tmp_path):
    import pyagrum as gum
    from pgmpy.readwrite import BIFReader

    network, path = plain(), tmp_path / "model.bif"
    path.write_text(write_bif(network), encoding="utf-8")
    by_pgmpy = from_pgmpy(BIFReader(str(path)).get_model())
    assert_equal(by_pgmpy, network)
    by_pyagrum = gum.loadBN(str(path))
    assert by_pyagrum.names() == set(PLAIN_NODES)
    for node in PLAIN_NODES:
        assert by_pyagrum.variable(node).labels() == network.variables[node].states


@pytest.mark.parametrize("state", MARKED)
def test_states_that_pyagrum_refuses_get_a_leading_underscore_in_bif_alone(tmp_path, state):
    import pyagrum as gum

    network = asked(state)
    for ending, text in ((".bif", write_bif(network)), (".bifxml", write_xmlbif(network))):
        (tmp_path / f"model{ending}").write_text(text, encoding="utf-8")
        read = gum.loadBN(str(tmp_path / f"model{ending}"))
        assert read.variable("age").labels()[0] == (
            "_" + state if ending == ".bif" or not state else state
        )
    unmarked = write_bif(network).replace("_" + state, state)
    (tmp_path / "model.bif").write_text(unmarked, encoding="utf-8")
    with pytest.raises(gum.FatalError):
        gum.loadBN(str(tmp_path / "model.bif"))


def asked(state="82.96_to_90"):
    """A network of two columns, one of them binned."""
    variables = {"age": Variable("age", (state, "gt_90")), "sick": Variable("sick", ("0", "1"))}
    cpts = {"age": np.array([0.75, 0.25]), "sick": np.array([[0.75, 0.5], [0.25, 0.5]])}
    return Network(Structure({"age": (), "sick": ("age",)}), variables, cpts)


def test_pgmpy_predicts_from_the_users_own_values(tmp_path):
    from pgmpy.readwrite import BIFReader

    network = asked("from_82.96_to_90")
    (tmp_path / "model.bif").write_text(write_bif(network), encoding="utf-8")
    model = BIFReader(str(tmp_path / "model.bif")).get_model()
    assert model.predict(pd.DataFrame({"age": ["from_82.96_to_90"]}))["sick"].tolist() == ["0"]


def test_pyagrum_takes_the_users_own_values_as_evidence(tmp_path):
    import pyagrum as gum

    (tmp_path / "model.bif").write_text(write_bif(asked("from_82.96_to_90")), encoding="utf-8")
    (tmp_path / "model.bifxml").write_text(write_xmlbif(asked()), encoding="utf-8")
    for name, state in (("model.bif", "from_82.96_to_90"), ("model.bifxml", "82.96_to_90")):
        read = gum.loadBN(str(tmp_path / name))
        found = gum.getPosterior(read, target="age", evs={"sick": "0"})[{"age": state}]
        assert found == pytest.approx(0.5625 / 0.6875)


def test_both_readers_take_every_name_of_xmlbif(tmp_path):
    import pyagrum as gum
    from pgmpy.readwrite import XMLBIFReader

    network, path = awkward(), tmp_path / "model.bifxml"
    path.write_text(write_xmlbif(network), encoding="utf-8")
    read = from_pgmpy(XMLBIFReader(str(path)).get_model())
    decode = XML_NAMES.decode
    codes = {node: XML_NAMES.encode(node) for node in network.structure.nodes}
    by_pyagrum = gum.loadBN(str(path))
    changed = [node for node, code in codes.items() if code != node]
    assert changed == [
        "",
        " ",
        "a\tb",
        "a\nb",
        "_x0041_",
        "_x00e9_",
        "a_x0041(",
        "_",
        "__",
    ]
    for node, parents in network.structure.parents.items():
        assert tuple(map(decode, read.structure.parents[codes[node]])) == parents
        assert tuple(map(decode, read.variables[codes[node]].states)) == (
            network.variables[node].states
        )
        assert np.array_equal(read.cpts[codes[node]], network.cpts[node])
        assert_pyagrum_has(by_pyagrum, network, node, codes, decode)


@pytest.mark.parametrize("escapes", [NODES, STATES, XML_NAMES], ids=["nodes", "states", "xml"])
@given(name=st.text())
def test_names_come_back(escapes, name):
    assert escapes.decode(escapes.encode(name)) == name


ODD = st.text("_x0aAE1.tableé(", max_size=12)  # what looks like escapes and keywords


@pytest.mark.parametrize("escapes", [NODES, STATES, XML_NAMES], ids=["nodes", "states", "xml"])
@given(a=ODD, b=ODD)
def test_odd_names_come_back_and_stay_apart(escapes, a, b):
    assert escapes.decode(escapes.encode(a)) == a
    assert (escapes.encode(a) == escapes.encode(b)) == (a == b)


@given(st.lists(st.text("_x0aAeE9é", max_size=7), unique=True, max_size=6))
def test_no_two_nodes_differ_in_case_alone(names):
    codes = encode_nodes(names)
    assert len({code.lower() for code in codes.values()}) == len(names)
    assert all(NODES.decode(code) == name for name, code in codes.items())


def test_files_of_other_writers_are_read(alarm_network, tmp_path):
    import pyagrum as gum
    from pgmpy.readwrite import BIFWriter, XMLBIFWriter

    model = alarm_network.to_pgmpy()
    for read, text in (
        (read_bif, str(BIFWriter(model))),
        (parse_xmlbif, str(XMLBIFWriter(model))),
    ):
        found = read(text)
        assert set(found.structure.edges) == set(alarm_network.structure.edges)
        assert found.cpts["HISTORY"] == pytest.approx(alarm_network.cpts["HISTORY"])
    by_pyagrum = gum.fastBN("a{x|y}->b{0|1}<-c[3]")
    for ending, read in ((".bif", read_bif), (".bifxml", parse_xmlbif)):
        gum.saveBN(by_pyagrum, str(tmp_path / f"model{ending}"))
        found = read((tmp_path / f"model{ending}").read_text())
        assert found.variables["b"].states == ("0", "1")
        values = by_pyagrum.cpt("b").reorganize(["b", *found.structure.parents["b"]]).toarray()
        assert found.cpts["b"].T.ravel() == pytest.approx(values.ravel(), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no variables"),
        ("A letter about a network.", "not in blocks of braces"),
        ("variable a {", "cut short"),
        (
            "variable a { type discrete [ 2 ] { x, y };}\nprobability ( a ) {\n  table 0.5;\n}",
            "1 probabilities for the 2 states of a",
        ),
        ("variable a { type discrete [ 2 ] { x, y };}\nprobability ( a ) { }", "not complete"),
        (
            "variable a { type discrete [ 2 ] { x, y };}\nprobability ( a | b ) { (z) 0.5, 0.5; }",
            "'b'",
        ),
        ("variable a { type discrete [ x ] { x, y };}", "invalid literal"),
        ("variable a { type discrete [ 3 ] { x, y };}", "a has 2 states, but it declares 3"),
    ],
)
def test_a_malformed_bif_file_is_refused(text, reason):
    with pytest.raises(ValueError, match=f"not a valid BIF file: .*{reason}"):
        read_bif(text)


GOOD = write_xmlbif(asked())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no element found"),
        ("<BIF></BIF>", "it has no variables"),
        (GOOD[:-40], "unclosed token|mismatched tag|no element found"),
        (GOOD.replace("<GIVEN>age", "<GIVEN>agf"), "no variable 'agf'"),
        (GOOD.replace("0.75 0.25</", "0.75</"), "the table of age has 1 numbers, not 2"),
        (GOOD.replace("0.75 0.25", "0.75 x"), "could not convert"),
        (GOOD.replace("0.75 0.25", "0.75 0.75"), "not a distribution"),
        (GOOD.replace("<NAME>sick", "<NAME>age"), "two variables have the name age"),
        (GOOD.replace("<FOR>age</FOR>", ""), "a DEFINITION has no FOR"),
        ('<!DOCTYPE BIF [<!ENTITY a "b">]>' + GOOD, "declares entities"),
    ],
)
def test_a_malformed_xmlbif_file_is_refused(text, reason):
    with pytest.raises(ValueError, match=f"not a valid XMLBIF file: .*({reason})"):
        parse_xmlbif(text)
