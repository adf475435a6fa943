from datetime import UTC, datetime, timedelta

import pytest

from protocols.deployment import certificates
from protocols.deployment.checks import check_files
from protocols.deployment.keys import encode_public, read_private
from protocols.deployment.parts import party_name
from protocols.deployment.templates import Names, init
from tests.protocols.deployment.parties import SITES, change, changed_key, deployment


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all")


def paths(folder):
    return sorted(folder.glob("*/*.toml"))


def found(paths, how, now=None):
    result = check_files(paths, lambda host, port: None, now)
    return [text for said, text in result.lines if said == how]


def test_parties_that_fit_together(folder):
    assert found(paths(folder), "wrong") == []
    told = "\n".join(found(paths(folder), "ok"))
    assert "north: 300 records" in told and "south: pulse: high, low, mid" in told
    assert "north: remembers nothing: a new site" in told
    for party in (*SITES, "dealer", "analyst"):
        public = read_private(folder / party / f"{party}.key").public
        assert f"{party}: public key {encode_public(public)}" in told
    assert not (folder / "north" / "memory").exists()


def test_a_relay_that_cannot_be_reached_is_a_warning(folder):
    result = check_files([folder / "north" / "site.toml"], lambda host, port: f"{host} {port}!")
    assert ("warning", "north: the relay 127.0.0.1:8102 127.0.0.1 8102!") in result.lines
    assert not result.wrong


def test_a_key_that_is_pinned_wrong_is_found_beside_its_owners_file(folder):
    own = read_private(folder / "dealer" / "dealer.key").public
    changed_key(folder / "north" / "site.toml", "south", encode_public(own[::-1]))
    assert found([folder / "north" / "site.toml"], "wrong") == []
    (wrong,) = found(paths(folder), "wrong")
    assert wrong.endswith("north/site.toml: pins another public key than south has")


def test_each_mistake_is_told_and_the_rest_checked_all_the_same(folder):
    (folder / "north" / "north.key").chmod(0o644)
    (folder / "south" / "records.csv").unlink()
    change(folder / "east" / "site.toml", "[policy]", "[polici]")
    wrong = found(paths(folder), "wrong")
    assert len(wrong) == 3
    assert "polici: unknown here" in wrong[0] and "can be read by others" in wrong[1]
    assert wrong[2].endswith("south/records.csv: no such file")


def test_too_few_records_for_the_policy(folder):
    change(folder / "north" / "site.toml", "fewest_records = 10", "fewest_records = 301")
    (wrong,) = found([folder / "north" / "site.toml"], "wrong")
    assert wrong == "north: 300 records: its policy wants 301 in a table"


def test_certificates_are_looked_at(folder, monkeypatch):
    monkeypatch.setattr(certificates, "KEY_BITS", 2048)
    certificates.provision(folder, [*SITES, "dealer", "analyst"], "127.0.0.1")
    for path in paths(folder):
        path.write_text(path.read_text().replace("# root", "root").replace("# cert", "cert"))
        path.write_text(path.read_text().replace("# key", "key"))
    assert found(paths(folder), "wrong") == found(paths(folder), "warning") == []
    late = datetime.now(UTC) + timedelta(days=350)
    assert len(found(paths(folder), "warning", late)) == 6
    assert len(found(paths(folder), "wrong", late + timedelta(days=30))) == 6
    for name in ("client.crt", "client.key"):  # the dealer shows the analyst's certificate
        (folder / "dealer" / name).write_bytes((folder / "analyst" / name).read_bytes())
    wrong = found(paths(folder), "wrong")
    assert any("in the name of analyst, not of dealer" in text for text in wrong)
    assert any("show one certificate" in text for text in wrong)


def test_what_init_refuses(tmp_path, folder):
    with pytest.raises(ValueError, match="a new or empty folder"):
        init(folder, Names(("a",)))
    for sites, reason in (((), "one site at least"), (("a", "a"), "twice"), (("dealer",), "twice")):
        with pytest.raises(ValueError, match=reason):
            Names(sites)
    with pytest.raises(ValueError, match="no address"):
        init(tmp_path / "x", Names(("a",)), relay_address="here")
    with pytest.raises(ValueError, match=r"relay\.org:1: practice, without certificates, is for"):
        init(tmp_path / "x", Names(("a",)), practice=True, relay_address="relay.org:1")
    assert not (tmp_path / "x").exists()
    with pytest.raises(ValueError, match="no name"):
        party_name("x" * 64)


def test_without_practice_keys_are_each_partys_own(tmp_path):
    init(tmp_path / "x", Names(("a", "b")))
    assert not list((tmp_path / "x").glob("**/*.key"))
    wrong = found(paths(tmp_path / "x"), "wrong")
    assert len([text for text in wrong if "a public key is wanted" in text]) == 4
    assert wrong[4].endswith("relay/server.key: No such file or directory")
