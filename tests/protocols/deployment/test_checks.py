from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.protocols.deployment.parties import (
    SITES,
    change,
    changed_key,
    deployment,
    pooled,
    without_relay,
)
from vertibayes_protocols.deployment import certificates
from vertibayes_protocols.deployment.checks import Outside, check_files
from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.keys import read_private
from vertibayes_protocols.deployment.parts import party_name
from vertibayes_protocols.deployment.status import locked, status_path
from vertibayes_protocols.deployment.templates import Names, init
from vertibayes_protocols.public_keys import encode_public
from vertibayes_protocols.storage.memory import SiteMemory


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all")


def paths(folder):
    return sorted(folder.glob("*/*.toml"))


def nothing(_):
    return None


def fails(_):
    raise ValueError("is wrong")


def checked(paths, now=None, reach=nothing, listen=nothing, study=nothing):
    return check_files(paths, Outside(reach, listen, study), now)


def found(paths, how, now=None):
    return [text for said, text in checked(paths, now).lines if said == how]


def test_parties_that_fit_together(folder):
    assert found(paths(folder), "wrong") == []
    told = "\n".join(found(paths(folder), "ok"))
    assert "north: 300 records" in told and "the counts below are private" in told
    variable = pooled(folder).variables["pulse"]
    counts = np.bincount(pooled(folder).codes["pulse"])
    shown = [f"{state} ({count})" for state, count in zip(variable.states, counts, strict=True)]
    assert len(shown) == 3 and f"south: pulse: {', '.join(shown)}" in told.splitlines()
    assert "north: remembers nothing: it is a new site" in told
    for party in (*SITES, "dealer", "analyst"):
        public = read_private(folder / party / f"{party}.key").public
        assert f"{party}: public key {encode_public(public)}" in told
    assert not (folder / "north" / "memory").exists()


def test_parties_whose_packets_a_job_carries_need_no_relay(folder):
    files = [path for path in paths(folder) if path.name != "relay.toml"]
    without_relay(files[0])
    assert "several addresses" not in str(checked(files).lines)
    for path in files[1:]:
        without_relay(path)
    lines = checked(files, reach=fails).lines
    assert not [text for how, text in lines if how == "wrong" or "certificates" in text]
    assert "no [relay]: only a job of NVIDIA FLARE can start this party" in str(lines)


@pytest.mark.parametrize(
    ("file", "what", "told"),
    [
        ("north/site", "reach", "north: the relay 127.0.0.1:8102 {}"),
        ("dealer/dealer", "reach", "dealer: the relay 127.0.0.1:8102 {}"),
        ("relay/relay", "listen", "relay: the relay 127.0.0.1:8102 {}"),
        ("analyst/study", "study", "analyst: {}"),
        ("south/site", "listen", "south: [metrics] address 127.0.0.1:9464 {}"),
    ],
)
def test_what_is_asked_outside_is_right_doubtful_or_wrong(folder, file, what, told):
    path = folder / f"{file}.toml"
    if "metrics" in told:
        path.write_text(path.read_text() + "\n[metrics]\n")
        with locked(status_path(path)):  # it is the party itself that listens there
            assert not checked([path], listen=fails).wrong
    result = checked([path], **{what: lambda _: "may be wrong"})
    assert ("warning", told.format("may be wrong")) in result.lines and not result.wrong
    result = checked([path], **{what: fails})
    assert ("wrong", told.format("is wrong")) in result.lines and result.wrong
    assert not checked([path]).wrong


def rows_of(folder):
    path = folder / "north" / "records.csv"
    return path, path.read_text().splitlines()


def test_a_column_that_tells_nothing_is_doubtful(folder):
    change(folder / "north" / "site.toml", "age = { cut = [30, 50, 70] }", "age.cut = [200]")
    told = "north: age: le_200 (300), gt_200 (0): only one state has records"
    assert any(text.startswith(told) for text in found(paths(folder), "warning"))
    path, rows = rows_of(folder)
    path.write_text("\n".join([rows[0], *(",,".join(row.split(",")[::2]) for row in rows[1:])]))
    file = folder / "north" / "records.csv"
    told = f"north: {file}: 1 of 2 columns is left out\n  age: left out: no values"
    assert told in found(paths(folder), "warning")
    assert found(paths(folder), "wrong") == []


def test_identifiers_with_spaces_around_them_are_doubtful(folder):
    change(folder / "north" / "site.toml", "[data]", "[data]\nkeep_spaces = true")
    path, rows = rows_of(folder)
    path.write_text("\n".join([*rows[:-2], f" {rows[-2]}", rows[-1].replace(",", " ,", 1)]))
    told = "north: 2 identifiers begin or end with a space"
    assert any(text.startswith(told) for text in found(paths(folder), "warning"))


def test_a_site_that_is_running_is_said_to_be(folder):
    site = folder / "north" / "site.toml"
    file = SiteFile.read(site)
    file.folder.mkdir()
    with closing(SiteMemory(file.memory)) as memory:
        assert "north: is running, on this machine" in found([site], "ok")  # and has no study yet
        memory.commit(b"study", read_data(file).codes)
        assert "north: is running, on this machine" in found([site], "ok")
        assert found([site], "wrong") == []
    assert any("remembers 0 record sets" in text for text in found([site], "ok"))


def test_data_that_have_changed_since_the_latest_study_are_doubtful(folder):
    site = folder / "north" / "site.toml"
    file = SiteFile.read(site)
    file.folder.mkdir()
    with closing(SiteMemory(file.memory)) as memory:
        memory.commit(b"study", read_data(file).codes)
    told = "not as in the latest study, which cannot be resumed"
    assert not any(told in text for text in found([site], "warning"))
    path, rows = rows_of(folder)
    rows[1] = rows[1].replace(",f", ",?").replace(",m", ",f").replace(",?", ",m")
    path.write_text("\n".join(rows))
    assert f"north: sex: {told}" in found([site], "warning")
    with closing(SiteMemory(file.memory)) as memory:  # a new study, over the new data
        memory.commit(b"another", read_data(file).codes)
    assert not any(told in text for text in found([site], "warning"))


def test_a_site_that_aligns_is_not_told_that_its_list_differs_from_an_aligned_one(folder):
    """Before: after each aligned study, that everybody outside it came, and all columns changed."""
    site = folder / "north" / "site.toml"
    file, data = SiteFile.read(site), read_data(SiteFile.read(site))
    file.folder.mkdir()
    codes = {name: column.copy() for name, column in data.codes.items()}
    next(iter(codes.values()))[:20] ^= 1
    aligned = replace(data, codes=codes)
    with closing(SiteMemory(file.memory)) as memory:
        memory.commit(b"study", aligned.codes)
        memory.keep_values(memory.snapshot(aligned, data.codes, memory.digests(aligned)))
    told = ("not as in the latest study", "since an earlier study")
    assert len([text for text in found([site], "warning") if any(t in text for t in told)]) == 2
    site.write_text(site.read_text() + "\n[alignment]\n")
    assert not [text for text in found([site], "warning") if any(t in text for t in told)]


def test_a_correction_for_which_a_new_study_is_refused_is_said(folder):
    site = folder / "north" / "site.toml"
    file, data = SiteFile.read(site), read_data(SiteFile.read(site))
    file.folder.mkdir()
    name, column = next(iter(data.codes.items()))
    with closing(SiteMemory(file.memory)) as memory:
        other = column.copy()
        other[0] = (other[0] + 1) % data.variables[name].codes
        earlier = replace(data, codes={**data.codes, name: other})
        memory.keep_values(memory.snapshot(earlier, data.codes, memory.digests(earlier)))
    told = f"since an earlier study: {name}: 1 changed; another study may be refused, until"
    assert any(told in text for text in found([site], "warning"))


def test_what_is_said_of_a_file_stands_together(folder):
    parts = [part for part in checked(paths(folder)).parts if part]
    names = "analyst", "dealer", "east", "north", "relay", "south"
    assert [part[0][1].rpartition(" ")[2] for part in parts] == list(names)
    for party, part in zip(names, parts, strict=True):
        assert all(text.startswith(f"{party}: ") for _, text in part[1:])


def test_a_key_that_is_pinned_wrong_is_found_beside_its_owners_file(folder):
    own = read_private(folder / "dealer" / "dealer.key").public
    changed_key(folder / "north" / "site.toml", "south", encode_public(own[::-1]))
    assert found([folder / "north" / "site.toml"], "wrong") == []
    (wrong,) = found(paths(folder), "wrong")
    assert wrong.endswith("north/site.toml: pins a key of south that south does not use")


def test_each_mistake_is_told_and_the_rest_checked_all_the_same(folder):
    (folder / "north" / "north.key").chmod(0o644)
    (folder / "south" / "records.csv").unlink()
    change(folder / "east" / "site.toml", "[policy]", "[polici]")
    wrong = found(paths(folder), "wrong")
    assert len(wrong) == 3
    assert "polici: unknown table" in wrong[0] and "other users can read" in wrong[1]
    assert wrong[2].endswith("south/records.csv: no such file")


def test_too_few_records_for_the_policy(folder):
    change(folder / "north" / "site.toml", "fewest_records = 10", "fewest_records = 301")
    (wrong,) = found([folder / "north" / "site.toml"], "wrong")
    assert wrong == "north: 300 records: its policy requires 301"


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
    assert any("show the same certificate" in text for text in wrong)


def test_what_init_refuses(tmp_path, folder):
    with pytest.raises(ValueError, match="a new or empty folder"):
        init(folder, Names(("a",)))
    mistakes = (((), "name at least one site"), (("a", "a"), "twice"), (("dealer",), "twice"))
    for sites, reason in mistakes:
        with pytest.raises(ValueError, match=reason):
            Names(sites)
    with pytest.raises(ValueError, match="not an address"):
        init(tmp_path / "x", Names(("a",)), relay_address="here")
    with pytest.raises(ValueError, match=r"--practice needs a relay on this machine, got relay"):
        init(tmp_path / "x", Names(("a",)), practice=True, relay_address="relay.org:1")
    assert not (tmp_path / "x").exists()
    with pytest.raises(ValueError, match="not a valid name"):
        party_name("x" * 64)


def test_without_practice_keys_are_each_partys_own(tmp_path):
    init(tmp_path / "x", Names(("a", "b")))
    assert not list((tmp_path / "x").glob("**/*.key"))
    wrong = found(paths(tmp_path / "x"), "wrong")
    assert len([text for text in wrong if "expected a public key" in text]) == 4
    assert wrong[4].endswith("relay/server.key: No such file or directory")
