"""An old backup of a memory: what was used up since is forgotten, unless other sites say so.

Site b permits two releases. Its owner restores a backup from before them. Sites that compare what
they remember of each other notice it; the control leaves the comparison out.
"""

import shutil

import pytest

from tests.privacy.test_attacks_on_approved_studies import begun, federation_of, releasing
from tests.protocols.network import Parties
from tests.protocols.small import data_of, packets, sealed
from vertibayes_mpc.errors import ProtocolError
from vertibayes_protocols.approval import Approved
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.errors import PeerAbortedError, QueryRefusedError
from vertibayes_protocols.federation import ANALYST, DEALER
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.queries import Begin, Meet
from vertibayes_protocols.queries.opening import tokens
from vertibayes_protocols.queries.opening.tokens import Token
from vertibayes_protocols.release import FamilyTables, Rule
from vertibayes_protocols.storage.memory import SiteMemory
from vertibayes_protocols.storage.runs_together import RunsTogether, accept
from vertibayes_protocols.variables import Family

DATA = data_of(60, a="x", b="y", c="z")
RULE, FAMILIES = Rule("laplace", epsilon=0.5), (Family("x"), Family("y", ("x",)), Family("z"))
OLDER = "its memory is older than the one with which it last met"


class World:
    """Three sites with memories in files; each release is of another study, in new processes."""

    def __init__(self, folder):
        self.folder, self.studies = folder, 0

    def path(self, site):
        return self.folder / site / "memory"

    def release(self):
        self.studies += 1  # another number of runs is another contract
        for site in "abc":
            (self.folder / site).mkdir(exist_ok=True)
        memories = {site: SiteMemory(self.path(site)) for site in "abc"}
        learner = releasing(RULE, *FAMILIES)
        try:
            options = {"memories": memories, "runs": self.studies}
            federation, contract = federation_of(DATA, learner, **options)
            for site, role in federation.roles.items():
                role.policy = Policy(most_epsilon=1.0 if site == "b" else 100.0)
            with federation:
                begun(federation, contract).release(FamilyTables(FAMILIES, False, RULE))
        finally:
            for memory in memories.values():
                memory.close()

    def back_up(self, site="b"):
        shutil.copytree(self.folder / site, self.folder / f"backup of {site}")

    def restore(self, site="b"):
        shutil.rmtree(self.folder / site)
        shutil.copytree(self.folder / f"backup of {site}", self.folder / site)

    def unknown(self, site="b"):
        return SiteMemory.read(self.path(site)).together.unknown


@pytest.fixture
def world(tmp_path):
    """Have a backup of b from after the first of its two releases."""
    world = World(tmp_path)
    world.release()
    world.back_up()
    world.release()
    with pytest.raises(QueryRefusedError, match=r"b refuses: .* 0 is left of most_epsilon"):
        world.release()
    return world


@pytest.fixture
def unsafe(monkeypatch):
    """Have sites that compare nothing."""
    monkeypatch.setattr(tokens, "exchange_tokens", lambda site, peers: iter(()))


def test_an_old_backup_releases_nothing_however_often_it_is_tried(world):
    world.restore()
    with pytest.raises(ProtocolError, match=f"b: {OLDER} a"):
        world.release()
    for _ in range(5):
        with pytest.raises(QueryRefusedError, match=f"b refuses: {OLDER} a"):
            world.release()
    assert SiteMemory.read(world.path("b")).spent.eps == 0.5


def test_without_the_comparison_an_old_backup_releases_again_and_again(unsafe, world):
    for _ in range(3):
        world.restore()
        world.release()  # the budget of b permits two releases, and has had five


def test_the_newest_backup_and_runs_that_break_are_no_older_memory(tmp_path, monkeypatch):
    world = World(tmp_path)
    world.release()
    for place in range(12):  # at each token, in both directions, and a process that ends then

        def broken(sent, packet, before=[place]):  # noqa: B006
            before[0] -= isinstance(sent.message, Token)
            if before[0] < 0:
                raise ConnectionError
            return packet

        with packets(monkeypatch, broken), pytest.raises(ConnectionError):
            world.release()
    world.back_up()
    world.restore()
    world.release()


def test_messages_that_are_cut_do_not_hide_an_older_memory(world, monkeypatch):
    """Whoever cuts messages lets b try again, and no other site forgets what it has of b."""
    world.restore()

    def cut(sent, packet):
        if isinstance(sent.message, Token) and sent.receiver == "b":
            raise ConnectionError
        return packet

    for _ in range(4):
        with packets(monkeypatch, cut), pytest.raises(ConnectionError):
            world.release()
    with pytest.raises(ProtocolError, match=f"b: {OLDER}"):
        world.release()


def test_the_owner_accepts_one_older_memory_and_no_other(world):
    """The same backup, restored once more, is noticed again."""
    world.restore()
    with pytest.raises(ProtocolError):
        world.release()
    file = world.folder / "b" / "memory.accepted"
    assert len(world.unknown()) == 2  # each site has its own token
    accept(file, world.unknown().values())
    accepted = file.read_bytes()
    world.release()
    world.restore()
    file.write_bytes(accepted)
    with pytest.raises(ProtocolError, match=f"b: {OLDER} a"):
        world.release()


def test_a_file_of_accepted_memories_that_cannot_be_read_accepts_nothing(world):
    world.restore()
    with pytest.raises(ProtocolError):
        world.release()
    (world.folder / "b" / "memory.accepted").write_text("{}")
    with pytest.raises(QueryRefusedError, match="cannot be used: ask its owner") as caught:
        world.release()
    assert "memory.accepted" not in str(caught.value)


def test_a_new_memory_is_noticed_and_new_memories_of_all_sites_are_not(world):
    shutil.rmtree(world.folder / "b")
    with pytest.raises(ProtocolError, match=f"b: {OLDER}"):
        world.release()
    for site in "abc":
        shutil.rmtree(world.folder / site)
    world.release()


def test_a_site_that_lies_about_its_token_only_makes_runs_fail(world, monkeypatch):
    """Its false token is an older memory to b; as it learns nothing, b has nothing to hide."""
    world = World(world.folder / "other")
    world.folder.mkdir()
    world.release()
    check = tokens.exchange_tokens

    def lying(site, peers):
        if site.party == "a":
            site.memory.together._seen = dict.fromkeys(site.memory.together._seen, "00" * 8)
        return check(site, peers)

    monkeypatch.setattr(tokens, "exchange_tokens", lying)
    with pytest.raises(ProtocolError, match=f"(b|c): {OLDER} a"):
        world.release()


@pytest.mark.parametrize("size", [1, 7, 9])
def test_a_token_of_another_size_names_its_sender(world, monkeypatch, size):
    def resized(sent, packet):
        is_first = sent.sender == "a" and isinstance(sent.message, Token)
        return sealed(packet, Token(bytes(size))) if is_first else packet

    with packets(monkeypatch, resized), pytest.raises(ProtocolError, match="a: sends a token of"):
        world.release()


def test_over_a_network_the_analyst_reads_which_memory_is_older():
    """The session breaks once; from then on the site refuses, so that no run is tried again."""
    with Parties(DATA, policy=Policy()) as parties:
        keys = {party: identity.keys.public for party, identity in parties.known.items()}
        contract = Contract(
            sites=tuple((site, keys[site]) for site in "abc"),
            dealer=(DEALER, keys[DEALER]),
            analyst=(ANALYST, keys[ANALYST]),
            variables=("x", "y", "z"),
            learner="a test",
            options={},
            rule=RULE,
        )
        approved = Approved(contract, "A. Owner", "2026-01-31", releasing(RULE, *FAMILIES))
        for site in "abc":
            parties.roles[site].approvals = {contract.digest: approved}.get
            parties.roles[site].analyst_key = keys[ANALYST]

        def met():
            with parties.session() as session:
                session.ask(Begin.of(contract))
                session.ask(Meet.of(session.role, contract.site_names, DEALER))

        met()
        met()
        parties.roles["b"].memory = SiteMemory()
        with pytest.raises(PeerAbortedError, match=f"b: {OLDER} a, c"):
            met()
        with pytest.raises(QueryRefusedError, match=f"b refuses: {OLDER} a, c"):
            met()


def test_a_peer_that_says_a_known_token_again_ends_the_alarm():
    """A lie about a token stops runs until the peer says a true one, and not until the owner."""
    tokens = RunsTogether(None, lambda _: None)
    tokens.send({"pair": b"12345678"})
    assert not tokens.check("pair", b"a lie...") and tokens.is_older("pair")
    assert tokens.check("pair", b"") and tokens.is_older("pair"), "none is no evidence"
    assert tokens.check("pair", b"12345678") and not tokens.is_older("pair")
