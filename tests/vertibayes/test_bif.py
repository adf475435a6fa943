import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.variables import Variable
from vertibayes.bif import decode_name, encode_name, encode_nodes, read_bif, write_bif
from vertibayes.network import Network, Structure, from_pgmpy

NAMES = [
    "plain", "with space", "(1.5,2]", "{braces}", "comma,", 'quote"', "it's", "50%", "%20",
    "_under", "__two", "1", "-3.5", "", " ", "é", "日本", "😀", "network", "Variable", "variable",
    "probability", "property", "type", "discrete", "default", "TABLE", "table", "Ab", "aB", "AB",
    "ab", "a|b", "a;b", "[x]", "<5", ">=10", "a/b", "\\", "a\tb", "a\nb", "x" * 200, "//c",
    "/*c*/", "None", "nan", "inf", "1e5", "TRUE", "#", "@", "a=b", "~",
]  # fmt: skip


def awkward():
    """A network all of whose nodes and states have awkward names."""
    generator = np.random.default_rng(1)
    names = [*NAMES]
    variables = {
        n: Variable(n, tuple(NAMES[(i + k) % len(NAMES)] for k in range(2 + i % 3)))
        for i, n in enumerate(names)
    }
    parents = {n: tuple(names[max(i - 2, 0) : i]) for i, n in enumerate(names)}
    cpts = {}
    for n in names:
        shape = [len(variables[m].states) for m in (n, *parents[n])]
        cpt = generator.random(shape) ** 8
        cpts[n] = cpt / cpt.sum(axis=0)
    return Network(Structure(parents), variables, cpts)


def test_read_back_to_the_same_model():
    network = awkward()
    back = read_bif(write_bif(network))
    assert back.structure == network.structure
    assert dict(back.variables) == dict(network.variables)
    for node in network.structure.nodes:
        assert np.array_equal(back.cpts[node], network.cpts[node])


def test_pgmpy_reads_the_same_model(tmp_path):
    from pgmpy.readwrite import BIFReader

    network, path = awkward(), tmp_path / "model.bif"
    path.write_text(write_bif(network), encoding="utf-8")
    read = from_pgmpy(BIFReader(str(path)).get_model())
    assert {
        decode_name(n): tuple(map(decode_name, p)) for n, p in read.structure.parents.items()
    } == dict(network.structure.parents)
    for node in network.structure.nodes:
        code = encode_nodes(network.structure.nodes)[node]
        assert (
            tuple(map(decode_name, read.variables[code].states)) == network.variables[node].states
        )
        assert np.array_equal(read.cpts[code], network.cpts[node])


def test_pyagrum_reads_the_same_model(tmp_path):
    import pyagrum as gum

    network, path = awkward(), tmp_path / "model.bif"
    path.write_text(write_bif(network), encoding="utf-8")
    read = gum.loadBN(str(path))
    codes = encode_nodes(network.structure.nodes)
    for node, parents in network.structure.parents.items():
        cpt = read.cpt(codes[node])
        labels = read.variable(codes[node]).labels()
        assert tuple(map(decode_name, labels)) == network.variables[node].states
        assert {decode_name(n) for n in cpt.names[1:]} == set(parents)
        values = cpt.reorganize([codes[n] for n in (node, *parents)]).toarray()
        wanted = network.cpts[node].transpose(range(len(parents), -1, -1))
        assert values == pytest.approx(wanted, abs=1e-7)  # pyAgrum reads with 7 digits or so


@given(st.text())
def test_names_come_back(name):
    code = encode_name(name)
    assert decode_name(code) == name
    assert code.isascii() and " " not in code


@given(st.text(max_size=6), st.text(max_size=6))
def test_names_stay_apart(a, b):
    assert (encode_name(a) == encode_name(b)) == (a == b)


@pytest.mark.parametrize(
    "text",
    [
        "variable a {",
        "variable a { type discrete [ 2 ] { x, y };}\nprobability ( a ) {\n  table 0.5;\n}",
        "variable a { type discrete [ 2 ] { x, y };}\nprobability ( a ) { }",
        "variable a { type discrete [ 2 ] { x, y };}\nprobability ( a | b ) { (z) 0.5, 0.5; }",
        "variable a { type discrete [ x ] { x, y };}",
    ],
)
def test_no_bif(text):
    with pytest.raises(ValueError, match="no BIF file"):
        read_bif(text)
