"""A site's ledger and memory are compared when it starts; `vertibayes verify` and `repair`."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from tests.e2e.command import run
from tests.protocols.deployment.parties import deployment
from tests.protocols.small import costing
from tests.randomness import SeededRandomness
from vertibayes_mpc.randomness import KeyPair
from vertibayes_protocols.deployment.files import SiteFile, own_keys
from vertibayes_protocols.deployment.keys import write_private
from vertibayes_protocols.deployment.roster.roster import Member, Retired, Roster
from vertibayes_protocols.deployment.running import site_role
from vertibayes_protocols.deployment.signed_heads import not_in, signed_head
from vertibayes_protocols.effects import Scored
from vertibayes_protocols.public_keys import public_text
from vertibayes_protocols.storage.ledger_file import LedgerFile, compared
from vertibayes_protocols.storage.memory import SiteMemory


@pytest.fixture
def own(tmp_path):
    """A site that has used something up in each of three sessions."""
    own = SiteFile.read(deployment(tmp_path / "all") / "north" / "site.toml")
    for _ in range(3):
        session(own)
    return own


def session(own):
    """Use something up, and note it, as a session does."""
    with site_role(own) as role:
        ledger = role.ledger.begin("analyst", lambda: ("study", ""))
        role.memory.apply(costing(leaves=Scored(1, "scores")))
        ledger.note("scores", "north", ("analyst",))
        ledger.end()


def verified(capsys, own, *more):
    code, said, error = run(capsys, "verify", own.source.path, *more)
    assert not error
    return code, said


def lines_of(own):
    return own.ledger.read_bytes().splitlines(keepends=True)


def damage(own, kind):
    """Damage the files; return what names it."""
    lines = lines_of(own)
    if kind == "a line":
        own.ledger.write_bytes(b"".join(lines[:5] + lines[6:]))
        return r"line 6: does not follow the line before it \(nor, for that, later lines: 3\): "
    if kind == "a changed line":
        own.ledger.write_bytes(b"".join(lines).replace(b'"scores"', b'"shapes"', 1))
        return r"does not follow the line before it"
    if kind == "the last lines":
        own.ledger.write_bytes(b"".join(lines[:-2]))
        return r"ledger.jsonl is older than the memory: 2 of 9 lines are missing"
    if kind == "the ledger":
        own.ledger.unlink()
        return r"9 of 9 lines are missing"
    if kind == "the memory":
        own.memory.unlink()
        return r"memory is older than the ledger: 5 of 5 changes until .* are missing"
    if kind == "another ledger":
        own.ledger.unlink()
        with closing(LedgerFile(own.ledger)) as ledger:
            for number in range(12):
                ledger.note(f"fact {number}", "north", ())
        return r"was replaced or changed: the memory knows other first 9 lines"
    content = own.memory.read_bytes()
    session(own)
    own.memory.write_bytes(content)
    return r"memory is older than the ledger: 1 of 7 changes"


KINDS = ["a line", "a changed line", "the last lines", "the ledger", "the memory"]
KINDS += ["another ledger", "an older memory"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_named_and_used_by_the_owner_alone(capsys, own, kind):
    assert verified(capsys, own) == (0, "ok       9 chained lines, 6 writes\n")
    what = damage(own, kind)
    with pytest.raises(ValueError, match=what + r".*: restore the newest backup of both files"):
        session(own)
    code, said = verified(capsys, own)
    assert code == 1 and "wrong    " in said and "`vertibayes repair`" in said
    if own.ledger.exists() and own.memory.exists():
        assert "Wrong: " in run(capsys, "ledger", own.folder)[1]
    assert "wrong" in run(capsys, "check", own.source.path)[1]
    before = [path.read_bytes() for path in (own.ledger, own.memory) if path.exists()]
    code, said, _ = run(capsys, "repair", own.source.path)
    assert code == 1 and "Nothing was changed" in said and "reads values of this person" in said
    assert before == [path.read_bytes() for path in (own.ledger, own.memory) if path.exists()]
    heads = known_heads(own)
    code, said, _ = run(capsys, "repair", own.source.path, "--because", "the disk is broken")
    assert code == 0 and "begins another chain" in said
    assert verified(capsys, own)[0] == 0
    session(own)
    assert "because the disk is broken" in own.ledger.read_text()
    assert not set(heads) & set(known_heads(own)), "each site that met it notices the repair"
    assert "Nothing to repair" in run(capsys, "repair", own.source.path)[1]


def known_heads(own):
    """Return the heads of the present chain."""
    if not own.ledger.exists():
        return []
    with closing(LedgerFile(own.ledger)) as ledger:
        return list(ledger._chain._lines)


def test_a_crash_at_any_byte_makes_neither_file_older(own):
    """The last line is cut anywhere, and what the memory knows was on disk before."""
    with site_role(own) as role:
        ledger = role.ledger.begin("analyst", lambda: ("study", ""))
        role.memory.apply(costing(leaves=Scored(1, "scores")))
        before, memory = own.ledger.read_bytes(), own.memory.read_bytes()
        ledger.note("scores", "north", ("analyst",))  # and no end
    after = own.ledger.read_bytes()
    for end in range(len(before), len(after) + 1):
        own.ledger.write_bytes(after[:end])
        own.memory.write_bytes(memory)
        with closing(SiteMemory(own.memory)) as read, closing(LedgerFile(own.ledger, read)):
            assert read.scored == 4


def test_files_of_an_older_release_are_continued(own):
    """Without a chain and without a count; from the first line on there are both."""
    with closing(SiteMemory(own.memory)) as memory:
        memory._ledger_was, memory.writes = (0, b""), -1
        memory.save(always=True)
    old = [json.loads(line) for line in lines_of(own)[1:]]
    for line in old:
        line.pop("after"), line.pop("memory", None)
    own.ledger.write_text('{"format": 1}\n' + "".join(json.dumps(line) + "\n" for line in old))
    session(own)
    with closing(SiteMemory(own.memory)) as memory:
        assert memory.known_ledger[0] == 3
        with closing(LedgerFile(own.ledger, memory)) as ledger:
            assert len(ledger.facts) == 4
    assert json.loads(lines_of(own)[10])["format"] == 2


def test_signed_heads_show_a_ledger_and_a_memory_that_both_went_back(capsys, own, tmp_path):
    content = {path: path.read_bytes() for path in (own.ledger, own.memory)}
    session(own)
    log = tmp_path / "heads"
    log.write_text(verified(capsys, own, "--head")[1])
    assert verified(capsys, own, "--heads", log)[0] == 0
    for path, old in content.items():
        path.write_bytes(old)
    assert verified(capsys, own)[0] == 0, "the control: both are of one time"
    code, said = verified(capsys, own, "--heads", log)
    assert code == 1 and "no longer has this head at line 12" in said
    log.write_text(log.read_text().replace(" 12 ", " 9 ") + "something else\n")
    said = verified(capsys, own, "--heads", log)[1]
    assert "line 1: not signed by the key of north" in said
    assert "line 2: not a line of `vertibayes verify --head`" in said


def test_heads_that_a_former_key_signed_are_known(own):
    """As long as a roster names the key as one of the site, and the ledger has the head."""
    ledger, *_ = compared(own.ledger, own.memory)
    log = own.folder / "heads"
    log.write_text(signed_head(own, ledger))
    source = SeededRandomness()
    old, new = own_keys(own), KeyPair.generate(source)
    write_private(own.folder / "new.key", new)
    retired = Retired("north", public_text(old), 1, "rotated")
    members, signer = (Member("north", "site", public_text(new)),), KeyPair.generate(source)
    roster = Roster("a", 2, members, (retired,), public_text(signer))
    after = replace(own, key=own.folder / "new.key", roster=None)
    assert "line 1: not signed" in not_in(log, after, ledger)[0], "the control"
    assert not not_in(log, replace(after, roster=roster), ledger)
