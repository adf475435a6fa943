"""What travels between each party and a relay, over plain TCP, and what cannot be read in it.

The connections have no TLS: only the seals of `vertibayes_protocols.seal` hide what is sent. Names,
states and identifiers have words in them that are nowhere else; the record of all connections is
searched for these words, as they are and written in other ways, and for columns of codes.
"""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest

from tests.e2e.analyst import learned
from tests.e2e.processes import Processes
from tests.e2e.proxy import Proxy
from vertibayes.counting import PlainCounter
from vertibayes.counting.secure import SecureCounter
from vertibayes.sampling import sample
from vertibayes.splitting import split_columns
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.opening import open_study
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import Variable

pytestmark = pytest.mark.machines

WORDS = {"a name": "Zqvname", "a state": "Zqvstate", "an identifier": "Zqvperson"}
WINDOW = 64  # records of a column that are looked for


def marked(data):
    """Put a word into each name, state and identifier."""
    renamed = {name: f"{WORDS['a name']}-{name}" for name in data.variables}
    states = lambda v: tuple(f"{WORDS['a state']}-{s}" for s in v.states)  # noqa: E731
    variables = {renamed[n]: Variable(renamed[n], states(v)) for n, v in data.variables.items()}
    ids = TextColumn.of(f"{WORDS['an identifier']}-{i:06}" for i in range(data.records))
    return SiteData(variables, {renamed[n]: codes for n, codes in data.codes.items()}, ids)


def ways_to_write(word):
    """Return a text's bytes, as they are and in the ways in which a library may write them."""
    plain = word.encode()
    yield plain
    for wide in ("utf-16-le", "utf-16-be", "utf-32-le"):
        yield word.encode(wide)
    yield from (plain.hex().encode(), plain.hex().upper().encode())
    for shift in range(3):  # what comes before decides how the letters fall
        whole = base64.b64encode(bytes(shift) + plain)
        yield whole[(0, 2, 3)[shift] : len(whole) - (0, 4, 4)[(shift + len(plain)) % 3]]


def columns_of(data):
    """Return pieces of the columns as arrays of codes would have them, one that varies of each."""
    for codes in data.codes.values():
        changes = np.flatnonzero(np.diff(codes))
        if len(changes) > len(codes) // 4:
            piece = codes[changes[0] : changes[0] + WINDOW]
            yield from (piece.astype(kind).tobytes() for kind in ("<u1", "<u2", "<u4", "<u8"))


def found(record, wanted):
    return [what for what in wanted if any(what in heard for heard in record)]


def opened(record):
    """Return what the frames of each WebSocket have carried: those of clients are masked."""
    return [b"".join(payloads(bytes(heard))) for heard in record]


def payloads(heard):
    """Yield the payload of each frame of one end of a WebSocket (RFC 6455, section 5.2)."""
    place = heard.find(b"\r\n\r\n") + 4
    while place + 2 <= len(heard):
        is_masked, size = divmod(heard[place + 1], 128)
        start = place + 2
        place = start + {126: 2, 127: 8}.get(size, 0)
        size = int.from_bytes(heard[start:place], "big") if size > 125 else size
        mask = heard[place : place + 4] if is_masked else bytes(4)
        place += 4 * is_masked
        masked = np.frombuffer(heard[place : place + size], np.uint8)
        yield (masked ^ np.resize(np.frombuffer(mask, np.uint8), len(masked))).tobytes()
        place += size


def texts():
    return list(itertools.chain.from_iterable(map(ways_to_write, WORDS.values())))


@pytest.fixture(scope="module")
def captured(tmp_path_factory, alarm_network):
    """A run over recording proxies: its model, its data, the record, and the analyst's link."""
    data = marked(sample(alarm_network, 10_000, seed=2))
    record, proxies = {}, []

    def around(party, address):
        proxies.append(Proxy(address, record.setdefault(party, [])))
        return proxies[-1].address

    folder = tmp_path_factory.mktemp("capture")
    with Processes(folder, split_columns(data, 3), around=around) as processes:
        session = processes.session()
        order = list(data.variables)
        model = learned(SecureCounter(open_study(session, processes.sites, DEALER, order=order)))
        session.close()
        yield model, data, record, processes
    for proxy in proxies:
        proxy.close()


def test_the_model_over_the_proxies_is_that_of_pooled_data(captured):
    model, data, record, _ = captured
    wanted = learned(PlainCounter(data))
    assert len(wanted["edges"]) > 30
    assert all(np.array_equal(model[name], wanted[name]) for name in wanted)
    assert set(record) == {"site-1", "site-2", "site-3", DEALER, ANALYST}


def test_no_word_of_the_data_and_no_column_is_in_the_record(captured):
    _, data, record, _ = captured
    for party, heard in ((party, opened(heard)) for party, heard in record.items()):
        assert sum(map(len, heard)) > 1 << (20 if party.startswith("site") else 14), party
        assert found(heard, texts()) == []
        assert found(heard, columns_of(data)) == []
        assert found(heard, [party.encode()]), "the names of parties can be read: it is the record"
    assert len(list(columns_of(data))) >= 20


def test_what_is_sent_unsealed_by_the_same_link_is_found(captured):
    """Else the search would find nothing whatever travelled: compressed, or written otherwise."""
    _, data, record, processes = captured
    secrets = [*texts(), *columns_of(data)]
    for secret in secrets:
        assert processes.link.deliver({"site-1": b"before" + secret + b"behind"}, 5.0) == {}
    for party in (ANALYST, "site-1"):  # sent by one, brought to the other
        assert found(opened(record[party]), secrets) == secrets
    assert found(opened(record["site-2"]), secrets) == []


def test_each_way_to_write_is_found_wherever_it_begins():
    for word in WORDS.values():
        plain, *_, hexed, upper, _, _, _ = ways_to_write(word)
        assert bytes.fromhex(hexed.decode()) == bytes.fromhex(upper.decode()) == plain
        for text in (f"{'x' * shift}{word}-behind" for shift in range(6)):
            encoded = [base64.b64encode(text.encode())]
            assert len(found(encoded, ways_to_write(word))) == 1
            for wide in ("utf-16-le", "utf-16-be", "utf-32-le"):
                assert word.encode(wide) in found([text.encode(wide)], ways_to_write(word))
