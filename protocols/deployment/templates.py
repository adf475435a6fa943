"""What `vertibayes init` writes: a commented file for each party, in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpc.randomness import KeyPair, SystemRandomness
from mpc.rounds import Party
from protocols.deployment.keys import write_private
from protocols.deployment.parts import address, is_this_machine, party_names
from protocols.public_keys import encode_public
from protocols.transports.mailbox import RELAY

PRACTICE_ADDRESS = "127.0.0.1:8102"
EXAMPLE_ADDRESS = "relay.example.org:8102"

_OWN = """\
[{role}]
name = "{name}"
key = "{name}.key"    # private: made by `vertibayes keygen --out {name}.key`; never sent
"""

_PINNED = """
[{role}]    # {why}
name = "{name}"
public_key = "{key}"
"""

_RELAY = """
[relay]
address = "{address}"
{certificates}"""

_CERTIFICATES = """\
root = "rootCA.pem"              # from the coordinator, who runs `vertibayes provision`
certificate = "{kind}.crt"
key = "{kind}.key"
"""

_PRACTICE = """\
# For practice on this machine alone: with certificates of `vertibayes provision` add
# root = "rootCA.pem"
# certificate = "{kind}.crt"
# key = "{kind}.key"
"""

_SITE = """\
folder = "memory"                # what this site has promised and revealed: back it up, never edit

[data]
file = "records.csv"             # never leaves this machine; with \\ in it, as 'C:\\data\\x.csv'
id_column = "id"                 # identifies people: all sites must hold the same people
# missing_codes = ["NA"]         # what says missing, beside the empty field; in one: "age=999"
# bins = 0.1                     # share of the records in a bin of numbers
# binning = "equal-frequency"    # or "equal-width"
# max_states = 100               # a variable with more is left out
# keep_spaces = false            # spaces around names and values
# strict = false                 # whether variables that would be left out are errors

# The variables that are offered, one a line; a column that is not named here is never looked at.
#   {{}}                           its states as found in the data; more than 16 numbers are binned
#   {{ states = ["no", "yes"] }}   these states, in this order; another value is an error
#   {{ cut = [18, 65] }}           numbers in these bins: up to 18, up to 65, above
#   {{ bins = 0.2 }}               numbers in bins of a fifth of the records
#   {{ categorical = true }}       numbers or dates that are names
#   {{ ignore_case = true }}       "yes" and "YES" are one state
# A name with a space stands in quotes: "blood pressure" = {{ cut = [120, 140] }}
[variables]
{variables}

[policy]                         # what is refused, whoever asks
most_variables = 8               # in one table
fewest_records = 10              # counted by a table, left out by it, or told apart by several
most_row_sets = 50
most_cells = 20_000_000          # in one query
most_memory = "1GiB"             # that one query may take at this party
most_failed_meets = 100          # lists of people of another site that were not its own
"""

_PEERS = """
[{role}]    # their public keys, as they told you: by telephone, not by e-mail
{keys}
"""

_STUDY = """\
[study]
folder = "study"                 # tables that were opened: a run that stopped goes on with them
# variables = ["a", "b"]         # of the study; all that the sites offer if not given
# memory = "1GiB"                # of one query at a party; as the sites allow if not given
"""

_LEARNING = """
[learning]
max_parents = 3
# ordering = ["a", "b"]          # for K2; as in the study if not given
# structure = "structure.json"   # learn the CPTs of this structure only
# missing = "em"                 # em, synthetic, available or state
# pseudo_count = 0.5             # added to each cell of the CPTs; 0: maximum likelihood
# structure_records = 10_000     # learn the structure on a sample of so many

# [validation]
# target = "a"
# validate = ["scv"]             # scv, svdg, public
# folds = 10
"""


@dataclass(frozen=True)
class Names:
    """Who takes part, by name."""

    sites: tuple[Party, ...]
    dealer: Party = "dealer"
    analyst: Party = "analyst"

    def __post_init__(self) -> None:
        party_names(self.parties)
        if not self.sites:
            raise ValueError("one site at least is wanted")

    @property
    def parties(self) -> tuple[Party, ...]:
        """All but the relay."""
        return (*self.sites, self.dealer, self.analyst)


def init(
    folder: Path,
    names: Names,
    *,
    practice: bool = False,
    relay_address: str | None = None,
    variables: Mapping[Party, Sequence[str]] | None = None,
) -> list[Path]:
    """Write a file for each party.

    Parameters
    ----------
    folder : Path
        New or empty.
    names : Names
    practice : bool, default=False
        Whether to make all private keys too, and pin their public keys: on one machine, to try.
    relay_address : str, optional
        HOST:PORT.
    variables : mapping of Party to sequence of str, optional
        What each site offers; a placeholder if None.

    Returns
    -------
    files : list of Path

    Raises
    ------
    ValueError
        If the folder is not empty, or an address is none, or another machine's in practice.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: a new or empty folder is wanted")
    where = address(relay_address or (PRACTICE_ADDRESS if practice else EXAMPLE_ADDRESS))
    if practice and not is_this_machine(where.rpartition(":")[0]):
        raise ValueError(f"{where}: practice, without certificates, is for this machine alone")
    keys = {name: f"paste the public key that {name} tells you" for name in names.parties}
    if practice:
        keys = {name: _new_key(folder, name) for name in names.parties}
    writer = _Writer(names, keys, where, practice)
    written = []
    for name, file, text in writer.files(variables or {}):
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _new_key(folder: Path, name: Party) -> str:
    keys = KeyPair.generate(SystemRandomness())
    write_private(folder / name / f"{name}.key", keys)
    return encode_public(keys.public)


@dataclass(frozen=True)
class _Writer:
    """Puts the texts of all files together."""

    names: Names
    keys: Mapping[Party, str]
    address: str
    practice: bool

    def files(self, variables: Mapping[Party, Sequence[str]]) -> list[tuple[Party, str, str]]:
        sites = [
            (site, "site.toml", self._site(site, variables.get(site))) for site in self.names.sites
        ]
        return [
            *sites,
            (self.names.dealer, "dealer.toml", self._dealer()),
            (self.names.analyst, "study.toml", self._study()),
            (RELAY, "relay.toml", self._relay("server").lstrip()),
        ]

    def _site(self, site: Party, variables: Sequence[str] | None) -> str:
        shown = "\n".join(f"{_key(name)} = {{}}" for name in variables or ("example",))
        others = [name for name in self.names.sites if name != site]
        return (
            _OWN.format(role="site", name=site)
            + _SITE.format(variables=shown)
            + self._pinned("dealer", self.names.dealer, "hands out masks; holds no data")
            + self._pinned("analyst", self.names.analyst, "asks for tables, and gets them")
            + self._peers("peers", others)
            + self._relay("client")
        )

    def _dealer(self) -> str:
        return (
            _OWN.format(role="dealer", name=self.names.dealer)
            + self._pinned("analyst", self.names.analyst, "whose queries it deals for")
            + self._peers("sites", self.names.sites)
            + self._relay("client")
        )

    def _study(self) -> str:
        return (
            _STUDY
            + "\n"
            + _OWN.format(role="analyst", name=self.names.analyst)
            + self._pinned("dealer", self.names.dealer, "the one that the sites have pinned")
            + self._peers("sites", self.names.sites)
            + _LEARNING
            + self._relay("client")
        )

    def _pinned(self, role: str, name: Party, why: str) -> str:
        return _PINNED.format(role=role, name=name, why=why, key=self.keys[name])

    def _peers(self, role: str, names: Sequence[Party]) -> str:
        keys = "\n".join(f'{name} = "{self.keys[name]}"' for name in names)
        return _PEERS.format(role=role, keys=keys)

    def _relay(self, kind: str) -> str:
        certificates = (_PRACTICE if self.practice else _CERTIFICATES).format(kind=kind)
        return _RELAY.format(address=self.address, certificates=certificates)


def _key(name: str) -> str:
    """Return a variable's name as a key of TOML: quoted, whatever is in it."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
