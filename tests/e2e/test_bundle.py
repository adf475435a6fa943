"""`vertibayes enrol`, `bundle` and `fetch`, as people use them, and as others attack them."""

import json
import socket
import time
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copytree
from threading import Thread

import pytest

from tests.e2e.command import Typed, run
from tests.e2e.processes import free_address
from vertibayes_protocols.deployment import bundling, downloading
from vertibayes_protocols.deployment.bundle import (
    Bundle,
    bundle_of,
    name_of,
    read_bundle,
    write_bundle,
)
from vertibayes_protocols.deployment.certificates import tls_key_of
from vertibayes_protocols.deployment.enrolling import enrol
from vertibayes_protocols.deployment.fetching import fetching, handed_out
from vertibayes_protocols.deployment.files import DealerFile, RelayFile, SiteFile, StudyFile
from vertibayes_protocols.deployment.keys import make_private, read_private
from vertibayes_protocols.transports import proof
from vertibayes_protocols.transports.relay import start_relay
from vertibayes_protocols.transports.tls import (
    HandshakeError,
    check_relay,
    read_revoked,
    relay_context,
)

PARTIES = {"relay": "relay", "dealer": "dealer", "clinic": "site", "hospital": "site",
           "ana": "analyst"}  # fmt: skip
FILES = {"site": "site.toml", "dealer": "dealer.toml", "analyst": "study.toml",
         "relay": "relay.toml"}  # fmt: skip
READ = {"site": SiteFile, "dealer": DealerFile, "analyst": StudyFile, "relay": RelayFile}


def file_of(folder, party):
    return folder / party / FILES[PARTIES[party]]


def enrolled(folder, party):
    name = "127.0.0.1:1" if party == "relay" else party
    return enrol(folder / party, PARTIES[party], name)[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of all parties and the first bundle, which nobody has fetched."""
    folder = tmp_path_factory.mktemp("made")
    lines = [enrolled(folder, party) for party in PARTIES]
    (folder / "lines.txt").write_text("\n".join(lines))
    study = file_of(folder, "ana")
    study.write_text(study.read_text().replace('sites = ["example"]', 'sites = ["clinic"]'))
    for party in ("clinic", "hospital"):
        people = "".join(f"{i},{'yes' if i % 2 else 'no'}\n" for i in range(40))
        (folder / party / "records.csv").write_text(f"id,example\n{people}")
    bundling.make_bundle(folder / "coordinator", lines, [study], "lungs", 365)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(copytree(made, tmp_path / "all"))


def path_of(folder, number=1):
    return folder / "coordinator" / f"bundle-{number}.json"


def make(folder, *lines, studies=(), days=365):
    """Make the next bundle; return its number."""
    return bundling.make_bundle(folder / "coordinator", lines, studies, None, days)[1].number


def fetch(capsys, folder, party, number=1, *options):
    """Fetch as a party, with all digits of the digest unless options are given."""
    path = path_of(folder, number) if isinstance(number, int) else number
    options = options or ("--digest", read_bundle(path).roster.digest.hex())
    found = run(capsys, "fetch", path, "--file", file_of(folder, party), *options)
    return found[0], found[1], found[2].replace(str(folder), "")


def take(folder, party, number=1):
    """Fetch without a person."""
    path = path_of(folder, number)
    found = fetching(file_of(folder, party), read_bundle(path), path.read_bytes())
    found.write()
    return found


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- the parties ---------------------------------------------------------------------------------


def test_the_lists_of_commands_cut_no_sentence(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, "roster", "--help")
    assert code == 0 and "  rotate  " in out and "..." not in out.split("Commands:")[1]


def test_each_party_fetches_what_its_file_needs(capsys, folder):
    for party, role in PARTIES.items():
        code, shown, error = fetch(capsys, folder, party)
        assert (code, error) == (0, ""), shown
        restart = "" if role == "relay" else "; restart the party that uses it"
        assert f"Written: {file_of(folder, party)}{restart}\n" in shown
        file = READ[role].read(file_of(folder, party))
        assert file.relay.address == "127.0.0.1:1"
        assert tls_key_of(file.relay.certificates.certificate.read_text())
        assert " is valid until " in shown  # its certificate: the command checks the file
    assert set(SiteFile.read(file_of(folder, "clinic")).pinned) == {"hospital", "dealer", "ana"}
    sent, own = (folder / party / "study.toml" for party in ("clinic", "ana"))
    assert StudyFile.read(sent).pinned == StudyFile.read(own).pinned
    before = contents(folder)
    code, shown, _ = fetch(capsys, folder, "clinic", 1, "--digest", "")
    assert code == 0 and "Nothing is new" in shown and contents(folder) == before


def test_enrol_prints_the_same_line_again_and_no_private_key(capsys, tmp_path):
    folder = "--folder", tmp_path / "x"
    code, line, said = run(capsys, "enrol", "site", "clinic", *folder)
    assert code == 0 and line.startswith("enrol site clinic vb1:") and line.count("\n") == 1
    assert "site.toml and the keys beside it stay here" in said
    assert run(capsys, "enrol", "site", "clinic", *folder)[1] == line
    for name in ("clinic.key", "client.key"):
        assert (tmp_path / "x" / name).stat().st_mode & 0o077 == 0
    code, _, error = run(capsys, "enrol", "site", "hospital", *folder)
    assert code == 2 and "is that of site clinic: specify another --folder" in error
    code, out, _ = run(capsys, "check", tmp_path / "x" / "site.toml")
    assert code == 2 and "expected HOST:PORT, which `vertibayes fetch` writes" in out


@pytest.mark.parametrize(
    ("party", "reason"),
    [
        (("site", "relay"), "'relay' is not a valid name"),
        (("station", "clinic"), "one of site, dealer, relay, analyst, got 'station'"),
        (("relay", "relay"), "'relay' is not an address: expected HOST:PORT"),
    ],
)
def test_enrol_makes_nothing_for_a_party_that_cannot_be(capsys, tmp_path, party, reason):
    code, _, error = run(capsys, "enrol", *party, "--folder", tmp_path)
    assert code == 2 and reason in error and not list(tmp_path.iterdir())


# ---- a person compares the digest ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--digest", "00" * 32), "--digest is not that of"),
        (("--digest", "0f 3a"), "'0f 3a' is not a digest: expected 64 hexadecimal digits"),
        (("--file", "no.toml"), "no.toml: no such file"),
    ],
)
@pytest.mark.parametrize("party", ["clinic", "relay"])
def test_another_digest_changes_nothing(capsys, folder, party, options, reason):
    before = contents(folder)
    code, _, error = fetch(capsys, folder, party, 1, *options)
    assert code == 2 and reason in error and contents(folder) == before


@pytest.mark.parametrize(("typed", "pinned"), [(16, True), (8, False), (0, False)])
def test_a_person_types_the_first_digits(capsys, folder, monkeypatch, typed, pinned):
    digest = read_bundle(path_of(folder)).roster.digest.hex()
    monkeypatch.setattr("sys.stdin", Typed(f"{digest[:typed]}\n"))
    site = file_of(folder, "clinic")
    code, _, error = run(capsys, "fetch", path_of(folder), "--file", site)
    assert (code == 0) == pinned and ("[roster]" in site.read_text()) == pinned
    assert pinned or "compare all of it with the coordinator by telephone" in error


def test_a_new_study_and_a_renewed_certificate_need_no_person(capsys, folder):
    take(folder, "clinic")
    before = SiteFile.read(file_of(folder, "clinic")).relay.certificates.certificate.read_text()
    study = file_of(folder, "ana")
    study.write_text(study.read_text().replace("max_parents = 3", "max_parents = 1"))
    make(folder, studies=[study], days=30)
    assert read_bundle(path_of(folder, 2)).certificates["clinic"] == before  # valid for a year
    certificates = read_bundle(path_of(folder, 2)).certificates
    code, shown, _ = fetch(capsys, folder, "clinic", 2, "--digest", "")
    assert code == 0 and "other file:  study.toml" in shown and "restart" not in shown
    assert "max_parents = 1" in (folder / "clinic" / "study.toml").read_text()
    bundling.make_bundle(folder / "coordinator", [], [], None, 365, new_root=True)
    renewed = read_bundle(path_of(folder, 3)).certificates
    assert all(renewed[name] != pem for name, pem in certificates.items())
    assert all(tls_key_of(renewed[name]) == tls_key_of(pem) for name, pem in certificates.items())
    assert not take(folder, "clinic", 3).compares_digest


def test_a_relay_that_moves_is_shown(capsys, folder):
    take(folder, "dealer")
    moved = replace(read_bundle(path_of(folder)), number=2, relay="127.0.0.1:2")
    write_bundle(path_of(folder, 2), moved, read_private(folder / "coordinator/coordinator.key"))
    code, shown, _ = fetch(capsys, folder, "dealer", 2, "--digest", "")
    assert code == 0 and "relay:       address = '127.0.0.1:2', was '127.0.0.1:1'\n" in shown
    assert "Written: " in shown and "Nothing is new" not in shown


def test_a_relay_with_metrics_fetches(folder):
    with file_of(folder, "relay").open("a") as file:
        file.write("\n[metrics]\n")
    take(folder, "relay")
    assert RelayFile.read(file_of(folder, "relay")).metrics


# ---- whoever carries lines and bundles -----------------------------------------------------------


def leaves(content, path=()):
    """Yield the places of all texts and numbers of JSON data."""
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from leaves(value, (*path, key))
    else:
        yield path


def test_a_bundle_that_was_changed_anywhere_is_refused(folder):
    content = json.loads(path_of(folder).read_bytes())
    assert isinstance(bundle_of(content), Bundle)  # the control
    places = list(leaves(content))
    assert len(places) > 25
    for *way, last in places:
        changed = json.loads(path_of(folder).read_bytes())
        at = changed
        for key in way:
            at = at[key]
        at[last] = at[last] + 1 if isinstance(at[last], int) else "A" + at[last]
        with pytest.raises(ValueError):  # noqa: PT011 (which of many reasons, is not the question)
            bundle_of(changed)
    del content["bundle"]["certificates"]["clinic"]
    with pytest.raises(ValueError, match="was changed after it was signed"):
        bundle_of(content)


@pytest.mark.parametrize("part", [3, 4])
def test_a_line_that_was_changed_on_its_way_is_noticed_by_its_party(capsys, folder, part):
    """Before a person compares anything; the others, whose lines are right, take the bundle."""
    lines = (folder / "lines.txt").read_text().splitlines()
    mine = next(line for line in lines if line.startswith("enrol site clinic")).split()
    false = enrol(folder / "thief", "site", "clinic")[0].split()
    changed = [*mine[:part], false[part], *mine[part + 1 :]]
    given = [line for line in lines if " clinic " not in line]
    bundling.make_bundle(folder / "other", [*given, " ".join(changed)], [], "lungs", 365)
    other = folder / "other" / "bundle-1.json"
    before = file_of(folder, "clinic").read_bytes()
    code, _, error = fetch(capsys, folder, "clinic", other)
    assert code == 2 and file_of(folder, "clinic").read_bytes() == before
    assert ("another key of clinic than", "which is neither in")[part == 3] in error
    assert fetch(capsys, folder, "hospital", other)[0] == 0


def test_another_coordinator_an_older_bundle_and_a_second_of_one_number_are_refused(folder):
    for party in PARTIES:
        take(folder, party)
    lines = (folder / "lines.txt").read_text().splitlines()
    bundling.make_bundle(folder / "other", lines, [], "lungs", 365)
    before = contents(folder)
    forged = folder / "other" / "bundle-1.json"
    for party in PARTIES:
        with pytest.raises(ValueError, match="another coordinator has signed it"):
            fetching(file_of(folder, party), read_bundle(forged), forged.read_bytes())
    make(folder)
    take(folder, "relay", 2)
    with pytest.raises(ValueError, match=r"it is number 1, and .* is number 2: ask for the newest"):
        take(folder, "relay", 1)
    path_of(folder, 2).unlink()
    (folder / "new.txt").write_text("")
    make(folder, "revoke hospital")
    with pytest.raises(ValueError, match="has signed two bundles of number 2"):
        take(folder, "relay", 2)
    take(folder, "clinic", 2)  # the first of number 2 that the clinic sees
    assert before[file_of(folder, "ana")] == file_of(folder, "ana").read_bytes()


def test_another_form_of_the_same_bundle_is_the_same_bundle(folder):
    """Whoever carries it cannot make the coordinator look like one who signs two of a number."""
    take(folder, "clinic")
    content = path_of(folder).read_bytes()
    path_of(folder).write_bytes(content + b"\n")
    assert not take(folder, "clinic").lines
    path_of(folder).write_bytes(content)
    assert not take(folder, "clinic").lines


@pytest.mark.parametrize(
    "name", ["site.toml", "../x.toml", "roster-9.json", "client.key", "bundle.json"]
)
def test_a_coordinator_cannot_replace_a_partys_own_files(folder, name):
    good = read_bundle(path_of(folder))
    values = {**vars(good), "files": {name: "[site]"}}
    with pytest.raises(ValueError, match="cannot be the name of a study's file"):
        Bundle(**values)
    assert Bundle(**{**values, "files": {"study2.toml": ""}}).number == 1  # the control


def test_a_file_that_no_bundle_brought_is_not_replaced(folder):
    own = folder / "clinic" / "study.toml"
    own.write_text("mine")
    with pytest.raises(ValueError, match=r"study\.toml exists and is from no bundle"):
        take(folder, "clinic")
    assert own.read_text() == "mine" and not (folder / "clinic" / "rootCA.pem").exists()


# ---- keys that change ----------------------------------------------------------------------------


def test_a_key_is_rotated_by_one_line_and_a_bundle(capsys, folder):
    for party in PARTIES:
        take(folder, party)
    code, line, notes = run(capsys, "roster", "rotate", file_of(folder, "clinic"))
    assert code == 0 and line.startswith("rotate clinic vb1:") and line.count("\n") == 1
    assert "clinic.2.key; the old key stays in use" in notes and "approved again" in notes
    (folder / "rotate.txt").write_text(line)
    code, shown, _ = run(capsys, "bundle", folder / "rotate.txt", "--out", folder / "coordinator")
    assert code == 0 and "bundle-2.json: epoch 2 of the roster of lungs" in shown
    assert (
        "key changed: site clinic, new key vb1:" in shown
        and "vertibayes fetch bundle-2.json" in shown
    )
    code, shown, error = fetch(capsys, folder, "clinic", 2)
    assert code == 0 and "own key:     clinic.2.key, in place of clinic.key" in shown, error
    code, _, error = fetch(capsys, folder, "clinic", 1)
    assert code == 2 and "it is number 1" in error
    assert "rotated at epoch 2" in run(capsys, "roster", "show", path_of(folder, 2))[1]


def test_a_stolen_key_is_revoked_with_its_certificate(folder):
    for party in PARTIES:
        take(folder, party)
    relay = file_of(folder, "relay")
    assert not read_revoked(RelayFile.read(relay).revoked)
    make(folder, "revoke hospital", enrolled(folder, "hospital"))
    for party in PARTIES:
        found = take(folder, party, 2)
        assert found.compares_digest == (party != "relay")
    (number,) = read_revoked(RelayFile.read(relay).revoked)
    issued = (folder / "coordinator" / "issued.txt").read_text()
    assert f"{number:x}    # hospital" in issued
    hospital = SiteFile.read(file_of(folder, "hospital"))
    assert hospital.key.name == "hospital.2.key"
    assert hospital.relay.certificates.key.name == "client.2.key"
    assert hospital.relay.certificates.certificate.name == "client.2.crt"
    clinic = SiteFile.read(file_of(folder, "clinic"))
    assert clinic.pinned["hospital"] == read_private(hospital.key).public


def test_a_relays_key_that_was_replaced_lets_nobody_be_the_relay(capsys, folder):
    def checks(certificates):
        """Return what the analyst does with a relay's certificates, outside and inside."""
        ours = StudyFile.read(file_of(folder, "ana")).relay.certificates
        ours, relay = proof.read_party_credentials(ours), proof.read_credentials(certificates)
        sent = proof.challenge(b"p" * 32, b"r" * 32, relay)
        yield partial(check_relay, relay.certificate, ours.revoked)
        yield partial(proof.read_challenge, sent, b"p" * 32, ours)

    for party in PARTIES:
        take(folder, party)
    stolen = Path(copytree(folder / "relay", folder / "stolen"))
    old = RelayFile.read(stolen / "relay.toml").relay.certificates
    for check in checks(old):
        check()  # the control
    (folder / "relay" / "server.key").unlink()
    (folder / "new.txt").write_text(enrolled(folder, "relay"))
    code, shown, _ = run(capsys, "bundle", folder / "new.txt", "--out", folder / "coordinator")
    assert code == 0 and "revoked:     1 certificates" in shown
    for party in PARTIES:
        take(folder, party, 2)
    for check in checks(RelayFile.read(file_of(folder, "relay")).relay.certificates):
        check()
    for check in checks(old):
        with pytest.raises(HandshakeError, match="revoked"):
            check()


# ---- the coordinator -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "options", "reason"),
    [
        ("", ("--out", "new"), "new has no bundle: specify --consortium NAME"),
        ("", ("--consortium", "x"), "has the bundles of lungs: remove --consortium"),
        ("# a note\nrotate clinic\n", (), "line 2: 'rotate clinic' is not a valid line"),
        ("relay somewhere tls:AAAA", (), "line 1: 'somewhere' is not an address"),
        ("enrol site x vb1:AA tls:AAAA", (), "line 1: 'tls:AAAA' is not a public key for TLS"),
        ("revoke nobody", (), "'nobody' is not in the roster"),
        ("", ("--study", "lines.txt"), "lines.txt, line 1: not TOML"),
        ("", ("--days", "0"), "--days must be from 1 to 3650"),
    ],
)  # fmt: skip
def test_mistakes_of_the_coordinator_are_named(capsys, folder, monkeypatch, lines, options, reason):
    monkeypatch.chdir(folder)
    (folder / "given.txt").write_text(lines)
    out = () if "--out" in options else ("--out", "coordinator")
    code, _, error = run(capsys, "bundle", "given.txt", *out, *options)
    assert code == 2 and reason in error and not path_of(folder, 2).exists()


def test_a_wrong_key_signs_no_bundle(folder):
    key = folder / "coordinator" / "coordinator.key"
    key.unlink()
    make_private(key)
    with pytest.raises(ValueError, match="not that of the coordinator of lungs"):
        make(folder, "revoke hospital")
    assert not path_of(folder, 2).exists()


def test_the_first_bundle_needs_the_relays_line(tmp_path):
    line = enrol(tmp_path / "clinic", "site", "clinic")[0]
    with pytest.raises(ValueError, match="no line names the relay"):
        bundling.make_bundle(tmp_path / "out", [line], [], "lungs", 365)


def test_the_files_that_a_study_names_are_in_the_bundle_and_no_other(folder):
    study = file_of(folder, "ana")
    for name in ("experts.json", "secret.csv"):
        (folder / "ana" / name).write_text("{}")
    named = '[learning]\nconstraints = "experts.json"\ntest = "secret.csv"\n'
    study.write_text(study.read_text().replace("[learning]\n", named, 1))
    make(folder, studies=[study])
    assert set(read_bundle(path_of(folder, 2)).files) == {"study.toml", "experts.json"}


# ---- through the relay ---------------------------------------------------------------------------


def test_the_relay_hands_out_the_bundle_by_its_name_alone(capsys, folder, monkeypatch):
    take(folder, "relay")
    roster, address = read_bundle(path_of(folder)).roster, free_address()
    own = RelayFile.read(file_of(folder, "relay"))
    hand_out = partial(handed_out, folder / "relay")
    with start_relay(address, certificates=own.relay.certificates, hand_out=hand_out):
        place = f"{address}/{name_of(roster)}"
        assert fetch(capsys, folder, "clinic", place, "--digest", roster.digest.hex())[0] == 0
        assert (folder / "clinic" / "bundle.json").read_bytes() == path_of(folder).read_bytes()
        code, _, error = fetch(capsys, folder, "hospital", f"{place[:-1]}g", "--digest", "x")
        assert code == 2 and "no such file" in error
        code, _, error = fetch(capsys, folder, "hospital", f"{place[:-4]}0000", "--digest", "x")
        assert code == 2 and "the relay has no such bundle (426)" in error
        monkeypatch.setattr(f"{handed_out.__module__}.bundle_of", None)  # it is verified once
        for name in (name_of(roster), "0" * 16):
            assert (hand_out(f"/bundle/{name}") is not None) == (name != "0" * 16)
        (folder / "relay" / "bundle.json").write_bytes(b"damaged")
        assert hand_out(f"/bundle/{name_of(roster)}") is None
    code, _, error = fetch(capsys, folder, "hospital", "127.0.0.1:1/" + "0" * 16, "--digest", "x")
    assert code == 2 and "the relay cannot be reached" in error
    code, _, error = run(capsys, "fetch", "--file", file_of(folder, "hospital"))
    assert code == 2 and "pins no roster: specify the coordinator's file" in error


@contextmanager
def listening(answer, context=None):
    """Let a stranger listen, who answers the first connection; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def serve():
            connection, _ = server.accept()
            with context.wrap_socket(connection, server_side=True) if context else connection as c:
                answer(c, c.recv(1000))

        thread = Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def drips(connection, _):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
    for _ in range(20):
        connection.sendall(b" ")
        time.sleep(0.05)


STRANGERS = {
    b"HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n": "refuses (302",
    b"SSH-2.0-OpenSSH\x1b[2J\r\n": "what answers there is no relay of vertibayes",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc": "is no relay of vertibayes",
    None: "no whole answer within 0.5 seconds",
}  # fmt: skip


@pytest.mark.parametrize("answer", STRANGERS)
def test_whatever_a_stranger_answers_is_one_error_in_time(capsys, folder, monkeypatch, answer):
    take(folder, "relay")
    context = relay_context(RelayFile.read(file_of(folder, "relay")).relay.certificates)
    monkeypatch.setattr(downloading, "SECONDS", 0.5)
    send = drips if answer is None else lambda c, _: c.sendall(answer)
    with listening(send, context) as port:
        place = f"127.0.0.1:{port}/{'0' * 16}"
        code, _, error = fetch(capsys, folder, "hospital", place, "--digest", "x")
    assert code == 2 and STRANGERS[answer] in error and error.count("\n") == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_fetch_goes_through_the_proxy_of_the_partys_file(capsys, folder, scheme):
    seen = []
    with listening(lambda _, request: seen.append(request)) as port:
        site = file_of(folder, "hospital")
        proxy = f'proxy = "{scheme}://bob:s3%40t@127.0.0.1:{port}"'
        site.write_text(site.read_text().replace("[relay]\n", f"[relay]\n{proxy}\n", 1))
        place = f"wss://relay.invalid/x/{'0' * 16}"
        code, _, error = fetch(capsys, folder, "hospital", place, "--digest", "x")
        if scheme == "https":  # to which the password would go in the clear: nothing was sent
            socket.create_connection(("127.0.0.1", port)).close()
    assert code == 2 and "bob" not in error and "s3" not in error
    if scheme == "https":
        assert seen == [b""] and "proxies of http:// alone" in error
    else:
        assert seen[0].startswith(b"CONNECT relay.invalid:443 ")
        assert b"Basic " + b64encode(b"bob:s3@t") in seen[0]
        assert "by way of the proxy 127.0.0.1" in error


def test_a_reverse_proxy_passes_on_its_own_part_of_the_path(folder):
    take(folder, "relay")
    bundle = path_of(folder).read_bytes()
    path = f"/bundle/{name_of(read_bundle(path_of(folder)).roster)}"
    assert handed_out(folder / "relay", path) == bundle
    assert handed_out(folder / "relay", f"/study-1{path}") == bundle
    for other in (path[len("/bundle/") :], f"{path}/", f"/study-1{path}0", "/study-1/bundle/"):
        assert handed_out(folder / "relay", other) is None


# ---- studies that cannot run ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('sites = ["clinic"]', 'sites = ["clinic", "lab"]', "'lab' is not a site in epoch 1"),
        ("\n# [run]", '\n[alignment]\nrules = ["exact"]\n# [run]', "no number of people of clinic"),
        ("[relay]\n", '[relay]\nproxy = "http://u:pw@10.0.0.1:80"\n', "it has a password"),
    ],
)
def test_bundle_refuses_a_study_that_cannot_run(capsys, folder, before, after, reason):
    study, out = file_of(folder, "ana"), folder / "coordinator"
    assert study.read_text().count(before) == 1
    study.write_text(study.read_text().replace(before, after))
    files = contents(out)
    code, shown, error = run(capsys, "bundle", "--out", out, "--study", study)
    assert (code, shown) == (2, "") and reason in error and "study.toml, line" in error
    assert "/tmp" not in error.replace(str(folder), "") and contents(out) == files


def test_a_study_of_an_earlier_bundle_keeps_nobody_from_revoking_a_key(capsys, folder):
    (folder / "lines.txt").write_text("revoke clinic\n")
    code, shown, _ = run(
        capsys, "bundle", folder / "lines.txt", "--out", folder / "coordinator",
    )  # fmt: skip
    assert code == 0 and "warning: a study of the last bundle cannot run: study.toml" in shown
    assert read_bundle(path_of(folder, 2)).roster.epoch == 2


# ---- before the first bundle ---------------------------------------------------------------------


def test_check_shows_the_data_of_a_site_before_its_first_bundle(capsys, folder):
    code, shown, _ = run(capsys, "check", file_of(folder, "clinic"))
    assert code == 2 and "`vertibayes fetch` writes, with the keys" in shown
    assert "clinic: 40 records" in shown and "example: no (20), yes (20)" in shown
    assert "clinic: remembers nothing" in shown and "1 wrong" in shown
    own = file_of(folder, "clinic")
    own.write_text(own.read_text().replace('id_column = "id"', 'id_column = "person"'))
    assert "no column 'person' (id_column)" in run(capsys, "check", own)[1]


def test_a_relay_has_one_address(tmp_path):
    first = enrol(tmp_path, "relay", "a.example.org:8102")
    assert enrol(tmp_path, "relay", "a.example.org:8102") == first
    for other in ("b.example.org:8102", "a.example.org:443", "wss://a.example.org/study-1"):
        with pytest.raises(ValueError, match=r"relay.toml has address = 'a.example.org:8102'"):
            enrol(tmp_path, "relay", other)
    where = "wss://a.example.org/study-1"
    assert enrol(tmp_path / "2", "relay", where)[0].startswith(f"relay {where} ")
    assert enrol(tmp_path / "2", "relay", where)[0] == enrol(tmp_path / "2", "relay", where)[0]
    with pytest.raises(ValueError, match="tls = false, which is not for a"):
        enrol(tmp_path / "2", "relay", "a.example.org:8102")


def test_a_file_with_the_password_of_a_proxy_is_the_partys_alone(capsys, folder):
    take(folder, "clinic")
    own = file_of(folder, "clinic")
    own.write_text(own.read_text().replace("[relay]\n", '[relay]\nproxy = "http://u:pw@h:80"\n', 1))
    own.chmod(0o640)
    code, shown, error = run(capsys, "check", own)
    assert code == 2 and "relay.proxy: other users can read" in shown and "pw" not in shown + error
    own.chmod(0o600)
    assert SiteFile.read(own).relay.proxy == "http://u:pw@h:80"
