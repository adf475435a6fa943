"""What a malicious site's words, and files that others may write, do at who reads them."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from tests.protocols.small import data_of, packets, sealed, seeded
from vertibayes.cli.outputs import write_folder
from vertibayes.study_files import TableFile
from vertibayes_mpc.errors import MalformedMessageError
from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.errors import QueryRefusedError
from vertibayes_protocols.queries import Describe
from vertibayes_protocols.queries.opening.describe import Description
from vertibayes_protocols.session import Answer
from vertibayes_protocols.storage.memory import SiteMemory

DATA = data_of(a="x", b="z")


def test_a_refusal_is_fit_for_a_terminal(monkeypatch):
    """It is written to the analyst's terminal as it came; an abort's reason is not."""

    def change(sent, packet):
        lies = isinstance(sent.message, Answer) and sent.sender == "b"
        return sealed(packet, Answer(False, "no\x1b]0;mine\x07\x1b[2J\rdone")) if lies else packet

    with packets(monkeypatch, change):
        federation = seeded(DATA)
    with pytest.raises(QueryRefusedError) as caught:
        federation.session.ask(Describe(("a", "b")))
    assert str(caught.value).isprintable()


def test_a_sites_names_of_variables_and_states_are_fit_for_a_terminal(monkeypatch):
    for text in ("z\x1b[2J", "yes\nedges: none", "\u202ereversed"):
        for variable in ((text, ("no", "yes"), False), ("z", ("no", text), False)):

            def change(sent, packet, variable=variable):
                lies = isinstance(sent.message, Description) and sent.sender == "b"
                return sealed(packet, Description(40, 8, 1 << 20, (variable,))) if lies else packet

            with packets(monkeypatch, change):
                federation = seeded(DATA)
            with pytest.raises(MalformedMessageError, match="control characters") as caught:
                federation.session.ask(Describe(("a", "b")))
            assert caught.value.party == "b" and str(caught.value).isprintable()


# ---- files ---------------------------------------------------------------------------------------


def test_results_are_their_owners_alone(tmp_path):
    """docs/operations.md: the analyst keeps `results/` secret (exact counts)."""
    write_folder(tmp_path / "results", lambda part: (part / "summary.json").write_text("{}"))
    assert (tmp_path / "results").stat().st_mode & 0o077 == 0


def test_a_folder_in_which_others_may_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    try:
        with pytest.raises(ValueError, match="others"):
            SiteMemory(tmp_path / "memory")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("link", ["memory.part", "memory.lock"])
def test_a_link_is_not_written_through(tmp_path, link):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / link).symlink_to(precious)
    try:
        memory = SiteMemory(tmp_path / "memory")
        memory.seed(bytes(16))
    except (ValueError, OSError):
        pass
    assert precious.read_text() == "precious"


def memory_of(**notes):
    known = {"key": "00" * 32, "committed": {}, "seeds": {}, "frame": {}, "sets": [], "failed": {}}
    known |= notes
    return saved(json.dumps(known).encode())


def saved(notes):
    buffer, none = io.BytesIO(), np.zeros(0, np.uint32)
    np.savez(buffer, notes=np.frombuffer(notes, np.uint8), records=none, atoms=none)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        memory_of(committed=[1]),
        memory_of(key=""),
        memory_of(key="00" * 65),
        saved(b"[" * 100_000),
    ],
    ids=["a list", "no key", "a long key", "deep"],
)
def test_a_memory_that_is_none_is_refused_by_name(tmp_path, content):
    (tmp_path / "memory").write_bytes(content)
    with pytest.raises(ValueError, match="is not a valid memory of a site"):
        SiteMemory(tmp_path / "memory").commit(bytes(16), DATA["a"].codes)


@pytest.mark.parametrize("text", ["a = " + "[" * 2000, "a = " + "{a = " * 2000])
def test_deep_toml_is_refused_by_name(tmp_path, text):
    (tmp_path / "site.toml").write_text(text)
    with pytest.raises((ValueError, RecursionError)) as caught:
        TomlFile.read(tmp_path / "site.toml")
    assert caught.type is ValueError and "site.toml" in str(caught.value)


def test_lengths_beyond_the_file_are_a_record_that_was_cut(tmp_path):
    (tmp_path / "tables").write_bytes(b"VBT1" + b"\xff" * 16 + b"x" * 100)
    with TableFile(tmp_path / "tables") as found:
        assert found.tables == []
