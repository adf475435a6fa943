import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from vertibayes_protocols.deployment import certificates
from vertibayes_protocols.deployment.certificates import (
    check_certificate,
    number_of,
    provision,
    public_key_of,
)
from vertibayes_protocols.transports.tls import has_purpose, read_revoked


@pytest.fixture
def now(folder):
    """The time once the certificates are made: they are not good before."""
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Certificates with small keys: making large ones takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "KEY_BITS", 2048)
        out = tmp_path_factory.mktemp("certificates")
        provision(out, ["a", "dealer"], "127.0.0.1")
        yield out


@pytest.fixture
def small(monkeypatch):
    """Make keys that are made in a moment."""
    monkeypatch.setattr(certificates, "KEY_BITS", 1024)


def files(folder, party, kind="client"):
    return (
        folder / party / "rootCA.pem",
        folder / party / f"{kind}.crt",
        folder / party / f"{kind}.key",
    )


@pytest.mark.parametrize(
    ("party", "kind"), [("a", "client"), ("dealer", "client"), ("relay", "server")]
)
def test_each_party_has_a_certificate_in_its_name(folder, party, kind, now):
    end = check_certificate(*files(folder, party, kind), party, now)
    assert timedelta(days=364) < end - now < timedelta(days=366)
    assert stat.S_IMODE((folder / party / f"{kind}.key").stat().st_mode) == 0o600
    assert {path.name for path in (folder / party).iterdir()} == {
        "rootCA.pem", f"{kind}.crt", f"{kind}.key",
    }  # fmt: skip


def test_the_root_key_is_the_coordinators_alone(folder):
    assert stat.S_IMODE((folder / "root.key").stat().st_mode) == 0o600
    assert not list(folder.glob("*/root.key"))


def test_the_relays_certificate_has_its_host(folder):
    found = x509.load_pem_x509_certificate((folder / "relay" / "server.crt").read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_another_party_is_added_under_the_same_root(folder, now):
    (new,) = provision(folder, ["b"], "127.0.0.1")
    check_certificate(folder / "a" / "rootCA.pem", new / "client.crt", new / "client.key", "b", now)


def contents(folder):
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/*.key")}


def test_the_same_command_renews_the_named_parties_alone(folder, now):
    root, before = (folder / "root.key").read_bytes(), contents(folder)
    number = number_of(folder / "a" / "client.crt")
    assert provision(folder, ["a"], "127.0.0.1") == [folder / "a"]
    after = contents(folder)
    assert [name for name in after if after[name] != before[name]] == ["a"]
    assert (folder / "root.key").read_bytes() == root
    check_certificate(*files(folder, "a"), "a", datetime.now(UTC))
    assert number_of(folder / "a" / "client.crt") != number
    assert stat.S_IMODE((folder / "a" / "client.key").stat().st_mode) == 0o600
    issued = (folder / "issued.txt").read_text().splitlines()
    assert any(line.startswith(f"{number}    # a, ") for line in issued)
    assert read_revoked(folder / "issued.txt") >= {int(number, 16)}, "the lines can be copied"


def test_the_relays_certificate_is_renewed_by_its_name_also_for_another_host(tmp_path, small):
    provision(tmp_path, ["a"], "127.0.0.1")
    before = contents(tmp_path)
    assert provision(tmp_path, ["relay"], "127.0.0.2") == [tmp_path / "relay"]
    after = contents(tmp_path)
    assert before["a"] == after["a"] and before["relay"] != after["relay"]
    check_certificate(*files(tmp_path, "relay", "server"), "relay", datetime.now(UTC))


def test_a_new_root_is_explicit_and_leaves_no_party_behind(tmp_path, small):
    provision(tmp_path, ["a", "b"], "h")
    old = tmp_path / "old.pem"
    old.write_bytes((tmp_path / "rootCA.pem").read_bytes())
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="--new-root must name all parties; missing: b, relay"):
        provision(tmp_path, ["a"], "h", new_root=True)
    assert contents(tmp_path) == before
    provision(tmp_path, ["a", "b", "relay"], "h", new_root=True)
    for party, kind in (("a", "client"), ("b", "client"), ("relay", "server")):
        own = files(tmp_path, party, kind)
        check_certificate(*own, party, datetime.now(UTC))
        with pytest.raises(ValueError, match="is not signed by"):
            check_certificate(old, *own[1:], party, datetime.now(UTC))


def test_a_root_that_is_not_that_of_its_key_is_refused(tmp_path, small):
    provision(tmp_path / "one", ["a"], "h")
    provision(tmp_path / "two", ["a"], "h")
    (tmp_path / "one" / "root.key").write_bytes((tmp_path / "two" / "root.key").read_bytes())
    with pytest.raises(ValueError, match=r"is not the RSA key of .*: --new-root replaces both"):
        provision(tmp_path / "one", ["b"], "h")


def test_a_certificate_is_for_its_purpose_alone(folder, now):
    for party, kind in (("a", "client"), ("relay", "server")):
        own = x509.load_pem_x509_certificate(files(folder, party, kind)[1].read_bytes())
        assert [has_purpose(own, k) for k in ("party", "relay")] == [party == "a", party != "a"]


@pytest.mark.parametrize(
    ("parties", "host", "days", "reason"),
    [
        (["a", "a"], "h", 1, "'a' appears twice"),
        (["server"], "h", 1, "'server' is not a valid name"),
        (["a b"], "h", 1, "not a valid name"),
        (["a"], "h", 0, "from 1 to 3650, got"),
        (["a"], "h", 3651, "from 1 to 3650, got 3651"),
        (["a"], "h", 10**6, "from 1 to 3650, got"),
        (["a"], "relay example", 1, "'relay example' is not a host"),
        (["a"], "https://r.org:8102", 1, "is not a host"),
        (["a"], "r.org:8102", 1, "is not a host"),
        (["a"], "", 1, "'' is not a host"),
        (["a"], "::1", 1, "is not a host"),
    ],
)
def test_mistakes(tmp_path, parties, host, days, reason):
    with pytest.raises(ValueError, match=reason):
        provision(tmp_path, parties, host, days)
    assert not list(tmp_path.iterdir())


def test_the_relays_certificate_is_not_silently_of_another_host(folder):
    with pytest.raises(ValueError, match=r"relay/server\.crt is not for the host 127\.0\.0\.2"):
        provision(folder, ["c"], "127.0.0.2")
    assert not (folder / "c").exists()


def test_no_certificate_is_good_for_longer_than_the_root(tmp_path, monkeypatch):
    monkeypatch.setattr(certificates, "KEY_BITS", 2048)
    with monkeypatch.context() as patch:
        patch.setattr(certificates, "ROOT_DAYS", 20)
        provision(tmp_path, ["a"], "h", 20)
    with pytest.raises(ValueError, match=r"--days must be at most 19"):
        provision(tmp_path, ["b"], "h", 21)
    assert not (tmp_path / "b").exists()


def test_what_is_wrong_with_certificates_is_named(folder, tmp_path, now):
    root, certificate, key = files(folder, "a")
    other = files(folder, "dealer")
    for given, party, clock, reason in (
        ((root, certificate, key), "b", now, "in the name of a, not of b"),
        ((root, certificate, other[2]), "a", now, "is not the key of"),
        ((certificate, certificate, key), "a", now, "is not signed by"),
        ((root, certificate, key), "a", now - timedelta(days=1), "UTC: set the clock, or"),
        ((root, certificate, key), "a", now + timedelta(days=400), "this clock says"),
        ((root, tmp_path / "none", key), "a", now, "No such file .*: `vertibayes fetch` writes it"),
        ((root, key, key), "a", now, "is not a certificate in PEM"),
        ((root, certificate, tmp_path / "none"), "a", now, "No such file"),
    ):
        with pytest.raises(ValueError, match=reason):
            check_certificate(*given, party, clock)
    (tmp_path / "open.key").write_bytes(key.read_bytes())
    (tmp_path / "open.key").chmod(0o644)
    with pytest.raises(ValueError, match="other users can read"):
        check_certificate(root, certificate, tmp_path / "open.key", "a", now)


def test_a_foreign_root_is_not_taken(folder, tmp_path, monkeypatch, now):
    monkeypatch.setattr(certificates, "KEY_BITS", 2048)
    provision(tmp_path, ["a"], "h")
    _, certificate, key = files(tmp_path, "a")
    with pytest.raises(ValueError, match="is not signed by"):
        check_certificate(folder / "rootCA.pem", certificate, key, "a", now)


def test_public_keys_tell_certificates_apart(folder):
    found = {public_key_of(files(folder, party)[1]) for party in ("a", "dealer")}
    assert len(found) == 2 and certificates.KEY_BITS >= 2048
    made = x509.load_pem_x509_certificate(files(folder, "a")[1].read_bytes()).public_key()
    assert isinstance(made, rsa.RSAPublicKey)
