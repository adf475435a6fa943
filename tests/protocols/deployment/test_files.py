from decimal import Decimal

import pytest

from tests.protocols.deployment.parties import SITES, change, changed_key, deployment
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.deployment.checks import read_any
from vertibayes_protocols.deployment.files import (
    DealerFile,
    RelayFile,
    SiteFile,
    StudyFile,
    own_keys,
)
from vertibayes_protocols.deployment.keys import read_private
from vertibayes_protocols.deployment.parts import VariableSpec
from vertibayes_protocols.public_keys import encode_public

OTHER = encode_public(KeyPair.generate(SeededRandomness()).public)


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all")


@pytest.fixture
def site(folder):
    return folder / "north" / "site.toml"


def test_what_init_writes_is_what_each_party_reads(folder):
    keys = {p: read_private(folder / p / f"{p}.key").public for p in (*SITES, "dealer", "analyst")}
    found = SiteFile.read(folder / "north" / "site.toml")
    assert (found.party, found.dealer, found.analyst) == ("north", "dealer", "analyst")
    assert found.pinned == {p: k for p, k in keys.items() if p != "north"}
    assert found.variables == {
        "age": VariableSpec(cut=(Decimal(30), Decimal(50), Decimal(70))),
        "sex": VariableSpec(),
    }
    assert found.policy.variables == ("age", "sex") and found.relay.certificates is None
    assert found.folder == folder / "north" / "memory"
    dealer = DealerFile.read(folder / "dealer" / "dealer.toml")
    assert dealer.pinned == {p: k for p, k in keys.items() if p != "dealer"}
    study = StudyFile.read(folder / "analyst" / "study.toml")
    assert study.pinned == {p: k for p, k in keys.items() if p != "analyst"}
    assert (study.sites, study.dealer, study.variables) == (SITES, "dealer", ())
    relay = RelayFile.read(folder / "relay" / "relay.toml")
    assert relay.relay.host_and_port == ("127.0.0.1", 8102)
    for path in folder.glob("*/*.toml"):
        assert read_any(path).source.path == path


def test_the_examples_in_what_init_writes_can_be_taken_over(site):
    text = site.read_text()
    path, name = r"'C:\data\x.csv'", '"blood pressure" = { cut = [120, 140] }'
    assert text.count(path) == text.count(name) == 1
    change(site, 'file = "records.csv"', f"file = {path}")
    change(site, '"sex" = {}', name)
    found = SiteFile.read(site)
    assert found.data.file.name == path.strip("'")
    assert found.variables["blood pressure"] == VariableSpec(cut=(Decimal(120), Decimal(140)))


CERTIFIED = 'root = "r"\ncertificate = "c"\nkey = "k"\n'


def test_a_party_behind_a_proxy_and_a_relay_behind_a_reverse_proxy(folder):
    site, relay = folder / "north" / "site.toml", folder / "relay" / "relay.toml"
    assert SiteFile.read(site).relay[2:] == ("root", None, True)
    way = 'trust = "system"\nproxy = "http://a:b%40c@proxy:3128"\n'
    address = 'address = "127.0.0.1:8102"\n'
    change(site, address, f'address = "wss://relay.org/study-1"\n{CERTIFIED}{way}')
    site.chmod(0o600)  # it has a password
    found = SiteFile.read(site).relay
    assert found.url == "wss://relay.org/study-1" and found.host_and_port == ("relay.org", 443)
    assert (found.trust, found.proxy) == ("system", "http://a:b%40c@proxy:3128")
    change(relay, address, f"{address}{CERTIFIED}tls = false\n")
    assert RelayFile.read(relay).relay.url == "ws://127.0.0.1:8102/"


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ('address = "ws://relay.org"\n', "relay.address: 'ws://relay.org' is not an address"),
        ('address = "wss://relay.org:0/"\n', "is not an address: expected wss://HOST"),
        ('address = "wss://relay.org/"\n', "only a relay on this machine needs none"),
        (f'address = "a:1"\n{CERTIFIED}trust = "all"\n', "relay.trust: "),
        ('address = "127.0.0.1:1"\ntrust = "system"\n', "relay.trust: root, certificate and key"),
        (f'address = "a:1"\n{CERTIFIED}tls = false\n', "relay.tls: "),
        (f'address = "a:1"\n{CERTIFIED}proxy = "http://u:s3cret@"\n', "not the address of a proxy"),
    ],
)
def test_a_way_to_the_relay_that_cannot_be_used_is_an_error(site, new, reason):
    change(site, 'address = "127.0.0.1:8102"\n', new)
    with pytest.raises(ValueError, match=reason) as caught:
        SiteFile.read(site)
    assert "s3cret" not in str(caught.value)


def test_a_private_key_is_in_no_file_but_its_own(folder):
    secrets = {p: (folder / p / f"{p}.key").read_text().splitlines()[1] for p in SITES}
    for path in folder.glob("*/*.toml"):
        assert not any(secret in path.read_text() for secret in secrets.values())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = "north"', 'name = "north pole"', "line 2: site.name: 'north pole' is not"),
        ('name = "north"', 'name = "server"', "site.name: 'server' is not a valid name"),
        ('key = "north.key"', "keys = 1", "line 1: site.key: missing; expected a text"),
        ('file = "records.csv"', "file = 1", "data.file: must be the path of a file, got 1"),
        ('file = "records.csv"', "", "data.file: file is missing; expected the path of a file, or"),
        ("[data]", "[data]\ntable = 't'", "data.file: table is for a database, and `database` is"),
        ("[data]", "[data]\ndatabase = 'x'", "data.database: file and database exclude each other"),
        ('file = "records.csv"', "database = 'x'", "data.database: give table or query, one of"),
        ('file = "records.csv"', "database = 'mysql://h/d'\ntable = 't'", "another kind, mysql://"),
        ("[data]", "[data]\naggregate = 'mean'", "must be first, last, min, max, count or same"),
        ('"sex" = {}', "sex = { aggregate = 'last' }", "data.order_by: missing; first and last"),
        ("fewest_records = 10", "fewest_records = 0", "policy.fewest_records: must be a whole"),
        ("fewest_records = 10", "fewest_record = 1", "policy.fewest_record: unknown key"),
        ('"sex" = {}', "sex = { state = [] }", "variables.sex.state: unknown key"),
        ('"sex" = {}', "sex = { states = ['f'] }", "at least 2 of them, got f"),
        ('"sex" = {}', "sex = { cut = [2, 1] }", "sex.cut: must be a list of ascending"),
        ('"sex" = {}', "sex = { cut = [] }", "at least 1 of them, got an empty list"),
        ('"sex" = {}', "sex = { bins = 0.7 }", "sex.bins: must be a share of the records, above"),
        ('"sex" = {}', "sex = { bins = 0.1, cut = [1] }", "cut and bins exclude each other"),
        ('"sex" = {}', "id = {}", "data.id_column: 'id' is also in [variables]"),
        ('"sex" = {}', "sex = 1", "variables.sex: must be a table, got 1"),
        ('address = "127.0.0.1:8102"', 'address = "here"', "relay.address: 'here' is not an add"),
        ('address = "127.0.0.1:8102"', 'address = "h:99999"', "is not an address: expected"),
        ('address = "127.0.0.1:8102"', 'address = "h:80"', "certificate and key are missing"),
        ("[peers]", "[peer]", "peer: unknown table; expected site"),
        ('name = "dealer"', 'name = "north"', "dealer: 'north': a site has that name, the dealer"),
        ('name = "dealer"', 'name = "south"', "a site has that name, the dealer is another party"),
        ('name = "analyst"', 'name = "dealer"', "the dealer has that name, an analyst is"),
        ('name = "analyst"', 'name = "east"', "a site has that name, an analyst is another"),
        ('name = "dealer"', 'name = "relay"', "'relay' is not a valid name"),
        ("south = ", "north = ", "peers.north: this site's own name"),
        ('id_column = "id"', "record_key = 'id'", "line 12: data.record_key: record_key is now "
         "called id_column"),
        ("[data]", "[data]\nmost_states = 9", "most_states is now called max_states"),
        ('"sex" = {}', "sex = { edges = [1] }", "variables.sex.edges: edges is now called cut"),
        ("[data]", "[data]\nbinning = 'x'", "binning: must be equal-frequency, eq"),
        ("[data]", "[data]\nbin = 1", "expected one of file, database, table, query"),
    ],
)  # fmt: skip
def test_mistakes_in_a_sites_file_are_named_with_file_line_and_key(site, old, new, reason):
    change(site, old, new)
    with pytest.raises(ValueError, match=r"site\.toml") as caught:
        SiteFile.read(site)
    assert reason in str(caught.value) and ", line " in str(caught.value)


def test_a_key_that_was_not_pasted_or_has_a_slip_is_named_with_its_line(site):
    lines = site.read_text().splitlines()
    at = next(place for place, line in enumerate(lines, 1) if line.startswith("south = "))
    for key, reason in (
        ("paste the key", "expected a public key, as `vertibayes keygen` prints it"),
        (OTHER[:-1], "has a typing error"),
        (OTHER[:9] + ("A" if OTHER[9] != "A" else "B") + OTHER[10:], "has a typing error"),
        ("vb1:!", "has a typing error"),
    ):
        changed_key(site, "south", key)
        with pytest.raises(ValueError, match=f"line {at}: peers.south") as caught:
            SiteFile.read(site)
        assert reason in str(caught.value)


def key_of(folder, party):
    return encode_public(read_private(folder / party / f"{party}.key").public)


@pytest.mark.parametrize(
    ("file", "party", "as_another"),
    [
        ("north/site.toml", "dealer", "south"),
        ("north/site.toml", "analyst", "dealer"),
        ("north/site.toml", "south", "east"),
        ("dealer/dealer.toml", "analyst", "north"),
        ("analyst/study.toml", "dealer", "east"),
    ],
)
def test_two_parties_of_one_key_are_one_party(folder, file, party, as_another):
    changed_key(folder / file, party, key_of(folder, as_another))
    with pytest.raises(ValueError, match=r"it has the public key of .*: one party"):
        read_any(folder / file)


@pytest.mark.parametrize(
    ("file", "party"),
    [
        ("north/site.toml", "dealer"),
        ("analyst/study.toml", "dealer"),
        ("dealer/dealer.toml", "east"),
    ],
)
def test_a_party_pinned_with_ones_own_key_is_oneself(folder, file, party):
    """A data site, or the analyst, that is also the dealer, under another name."""
    path = folder / file
    changed_key(path, party, key_of(folder, path.parent.name))
    with pytest.raises(ValueError, match=f"{party} is pinned with this party's own public key"):
        own_keys(read_any(path))


@pytest.mark.parametrize("name", ["relay", "server"])
def test_nobody_is_the_relay(folder, name):
    """Its name is taken, so that no dealer, analyst or site has its certificate."""
    for file, party in (("dealer/dealer", "dealer"), ("analyst/study", "analyst")):
        change(folder / f"{file}.toml", f'name = "{party}"', f'name = "{name}"')
        with pytest.raises(ValueError, match=f"'{name}' is not a valid name"):
            read_any(folder / f"{file}.toml")


def test_the_dealer_is_never_the_analyst(folder):
    study = folder / "analyst" / "study.toml"
    change(study, 'name = "analyst"', 'name = "dealer"')
    with pytest.raises(ValueError, match="an analyst has that name, the dealer is another party"):
        StudyFile.read(study)


def test_certificates_belong_together(site):
    change(site, '# root = "rootCA.pem"', 'root = "rootCA.pem"')
    with pytest.raises(ValueError, match=r"relay\.root: root, certificate and key belong together"):
        SiteFile.read(site)


def test_a_file_without_sites_and_one_of_nobody(folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    text = study.read_text()
    study.write_text(text[: text.index("north = ")] + text[text.index("[learning]") :])
    with pytest.raises(ValueError, match="sites: it is empty; name at least one"):
        StudyFile.read(study)
    (tmp_path / "x.toml").write_text("a = 1\n")
    with pytest.raises(ValueError, match=r"relay: expected a table \[site\], \[study\], "):
        read_any(tmp_path / "x.toml")


def test_a_folder_in_place_of_a_file_is_refused_with_its_files(folder, tmp_path):
    with pytest.raises(ValueError, match=r"a folder; specify a file in it: .*study\.toml, .* more"):
        StudyFile.read(folder)
    with pytest.raises(ValueError, match=r"a folder; specify a file in it: \S*north/site\.toml$"):
        read_any(folder / "north")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"a folder; expected a study\.toml or site\.toml; `ver"):
        StudyFile.read(tmp_path / "empty")
