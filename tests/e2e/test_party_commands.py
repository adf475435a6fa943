"""The commands that need no transport."""

import os
import runpy
import socket
import stat
import subprocess
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.command import run
from tests.protocols.deployment.parties import change, deployment, without_relay
from vertibayes.cli import processes
from vertibayes.cli.check import reach
from vertibayes.cli.up import party_files
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.deployment.keys import read_private
from vertibayes_protocols.public_keys import decode_public

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_sites"


@pytest.fixture
def folder(tmp_path):
    return deployment(tmp_path / "all")


def test_the_list_of_commands_cuts_no_sentence(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, "--help")
    assert code == 0 and "  site  " in out and "..." not in out.split("Commands:")[1]


@pytest.mark.parametrize("party", ["site", "dealer", "relay"])
def test_a_partys_help_leads_on(capsys, party):
    out = " ".join(run(capsys, party, "--help")[1].split())
    assert all(word in out for word in ("vertibayes enrol", "vertibayes check", "docs/deploy.md"))


def test_keygen(capsys, tmp_path):
    code, out, error = run(capsys, "keygen", "--out", tmp_path / "a.key")
    assert (code, error) == (0, "")
    assert decode_public(out.strip()) == read_private(tmp_path / "a.key").public
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    before = (tmp_path / "a.key").read_bytes()
    code, out, error = run(capsys, "keygen", "--out", tmp_path / "a.key")
    assert code == 2 and not out and "a key is never overwritten" in error
    assert (tmp_path / "a.key").read_bytes() == before


def test_init_names_the_files_that_it_wrote(capsys, tmp_path):
    code, out, _ = run(capsys, "init", "--sites", "a, b", "--out", tmp_path / "x")
    wanted = ["a/site.toml", "b/site.toml", "dealer/dealer.toml"]
    wanted += ["analyst/study.toml", "relay/relay.toml"]
    assert code == 0 and out.splitlines() == [str(tmp_path / "x" / name) for name in wanted]
    assert run(capsys, "init", "--sites", "a", "--out", tmp_path / "x")[0] == 2


def test_provision_tells_who_gets_what(capsys, tmp_path):
    options = "--parties", "a,dealer", "--host", "h.example.org", "--out", tmp_path / "c"
    code, out, _ = run(capsys, "provision", *options)
    assert code == 0 and f"{tmp_path / 'c' / 'root.key'}: stays here" in out
    assert [path.name for path in sorted((tmp_path / "c").glob("*/*.key"))] == [
        "client.key", "client.key", "server.key",
    ]  # fmt: skip


def test_check_has_an_exit_status(capsys, folder):
    files = sorted(folder.glob("*/*.toml"))
    code, out, _ = run(capsys, "check", *files)
    assert code == 0 and "vertibayes" in out.splitlines()[0]
    assert "cannot be reached" in out and "wrong  " not in out
    assert out.splitlines()[-1] == f"nothing wrong, {out.count('warning ')} warnings"
    (folder / "north" / "records.csv").unlink()
    code, out, _ = run(capsys, "check", *files)
    assert code == 2 and "wrong   " in out and out.splitlines()[-1].startswith("1 wrong, ")


@pytest.mark.parametrize("kind", ["site", "dealer", "relay"])
def test_a_party_whose_file_is_at_fault_does_not_start(capsys, tmp_path, kind):
    (tmp_path / "x.toml").write_text("[unknown]\n")
    code, out, error = run(capsys, kind, tmp_path / "x.toml")
    assert code == 2 and not out and "x.toml, line 1: unknown: unknown table" in error


def test_an_error_of_the_system_names_the_file_and_no_number(capsys, folder):
    change(folder / "north" / "site.toml", 'folder = "memory"', 'folder = "records.csv"')
    code, _, error = run(capsys, "site", folder / "north" / "site.toml")
    assert code == 2 and error == f"vertibayes: {folder / 'north' / 'records.csv'}: File exists\n"


def test_up_is_for_this_machine_and_wants_all_files(capsys, folder, tmp_path):
    study = folder / "analyst" / "study.toml"
    (folder / "south" / "site.toml").rename(folder / "south" / "gone.toml")
    code, _, error = run(capsys, "up", study, "--out", tmp_path / "out")
    assert code == 2 and "south/site.toml: no such file" in error
    address = next(line for line in study.read_text().splitlines() if line.startswith("address"))
    certificates = 'root = "r"\ncertificate = "c"\nkey = "k"'
    change(study, address, f'address = "relay.example.org:8102"\n{certificates}')
    code, _, error = run(capsys, "up", study, "--out", tmp_path / "out")
    assert code == 2 and "the relay relay.example.org is not this machine" in error


def test_up_does_not_take_a_port_that_is_taken(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        folder = deployment(tmp_path / "all", address=f"127.0.0.1:{port}")
        study = folder / "analyst" / "study.toml"
        code, _, error = run(capsys, "up", study, "--out", tmp_path / "out")
        assert code == 2 and "another program listens at" in error
        assert reach("127.0.0.1", port) is None
    assert "cannot be reached" in reach("127.0.0.1", port)


def test_approve_outside_the_folder_of_a_site_says_where_to_go(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, _, error = run(capsys, "approve", folder / "analyst" / "study.toml")
    said = "site.toml: no such file; run the command in the site's folder, or specify its file"
    assert code == 2 and said in error


def test_the_files_of_all_parties_are_found(folder):
    study = folder / "analyst" / "study.toml"
    found = party_files(study, StudyFile.read(study))
    assert list(found) == ["relay", "dealer", "north", "south", "east"]


def test_the_files_of_the_example_fit_together(capsys, tmp_path, monkeypatch):
    """What `prepare.sh` does, without the shell; each script runs what its folder has."""
    monkeypatch.setattr("vertibayes_protocols.deployment.certificates.KEY_BITS", 2048)
    folder = tmp_path / "three"
    copytree(EXAMPLE, folder)
    runpy.run_path(str(EXAMPLE / "make_records.py"))["main"](folder)
    parties = "clinic", "hospital", "registry", "dealer", "analyst"
    for party in parties:
        _, public, _ = run(capsys, "keygen", "--out", folder / party / f"{party}.key")
        for path in folder.glob("*/*.toml"):
            path.write_text(path.read_text().replace(f"KEY OF {party}", public.strip()))
    options = "--parties", ",".join(parties), "--host", "127.0.0.1", "--out", folder
    assert run(capsys, "provision", *options)[0] == 0
    files = sorted(folder.glob("*/*.toml"))
    code, out, _ = run(capsys, "check", *files)
    assert code == 0 and len(files) == 6, out
    assert "clinic: age: le_35 (" in out
    for path in files:
        script = (path.parent / "run.sh").read_text()
        assert f"vertibayes check {path.name} &&" in script


def test_a_child_imports_no_folder_of_the_working_folder(tmp_path):
    """The control is a child without -P: it runs what it finds there."""
    (tmp_path / "vertibayes").mkdir()
    (tmp_path / "vertibayes" / "__init__.py").write_text("raise SystemExit('a folder of the user')")
    (tmp_path / "relay.toml").write_text('[relay]\naddress = "127.0.0.1:1"\n')
    command = processes.child_command("check", tmp_path / "relay.toml")
    near, far = os.pipe()  # a child ends when its standard input does
    run_there = partial(
        subprocess.run, cwd=tmp_path, env=processes.child_environment(), capture_output=True,
        text=True, stdin=near,
    )  # fmt: skip
    assert "relay: no certificates" in run_there(command).stdout
    control = run_there([word for word in command if word != "-P"])
    assert control.stderr.strip() == "a folder of the user"
    os.close(near)
    os.close(far)


@pytest.mark.parametrize(
    ("command", "file"),
    [("site", "north/site.toml"), ("learn", "analyst/study.toml"), ("up", "analyst/study.toml")],
)
def test_a_party_without_a_relay_is_not_started_by_hand(folder, tmp_path, capsys, command, file):
    without_relay(folder / file)
    more = [] if command == "site" else ["--out", str(tmp_path / "out")]
    code, _, said = run(capsys, command, str(folder / file), *more)
    assert code == 2 and f"{file}: [relay] is missing: " in said
    assert not (tmp_path / "out").exists()
