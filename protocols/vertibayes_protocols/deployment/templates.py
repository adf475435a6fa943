"""What `vertibayes init` writes: a folder for each party, with its commented file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.deployment.keys import make_private
from vertibayes_protocols.deployment.parts import address, is_this_machine, party_names
from vertibayes_protocols.public_keys import public_text
from vertibayes_protocols.transports.mailbox import RELAY

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

_REVOKED = """\
# revoked = "revoked.txt"        # serial numbers of certificates that the relay refuses, one a line
"""
_PATIENCE = """
# [patience]                     # how long this party waits for others, in seconds or as "10 min"
# silent = 600                   # for a party that can be reached: it may be computing
# gone = 10                      # for a party, or the relay, that cannot be reached
# probe = 2                      # between two checks whether it can be
# hello = 60                     # for the parties of a session that begins
"""

_SITE = """\
folder = "memory"                # what this site promised and revealed: back it up, never edit it

[data]
file = "records.csv"             # never leaves this machine; with \\ in it, as 'C:\\data\\x.csv'
                                 # CSV, Parquet or a folder of Parquet files; or, in place of it,
# database = "postgresql://clinic@127.0.0.1:5432/records"    # or the path of a DuckDB file
# table = "people"               # or query = "select ... from ..."
# password_variable = "CLINIC_PASSWORD"    # or set PGPASSWORD, or write ~/.pgpass
id_column = "id"                 # identifies people; the same people where sites hold columns
# missing_codes = ["NA"]         # mean missing, beside the empty field; in one column: "age=999"
# bins = 0.1                     # share of the records in a bin of a numeric column
# binning = "equal-frequency"    # or "equal-width", "intervals"
# max_states = 100               # variables with more are left out
# rare_states = "merge"          # into "other", states of fewer than fewest_records; or "keep"
# keep_spaces = false            # keep spaces around names and values
# strict = false                 # refuse data with variables that would be left out
# aggregate = "last"             # several rows a person: first, last, min, max, count, same
# order_by = "date"              # the order of these rows, for first and last

# [alignment]                    # match the list of people with those of other sites
# rules = ["exact"]              # of each id column: exact, text, digits, name, "date:%d.%m.%Y"
# duplicates = "refuse"          # or "drop": records that share an identifier match nobody
# least_level = 1                # 2: only if no site learns which of its people are in the study
# most_people = {{ b = 10_000 }}   # longest plausible list of another site; 10 times the own one
# most_alignments = 3            # in all studies; `vertibayes meets site.toml --alignments`

# The variables that this site offers, one on each line; no other column is ever used.
#   {{}}                           its states as in the data; more than 16 numbers are binned
#   {{ states = ["no", "yes"] }}   these states, in this order; another value is an error
#   {{ cut = [18, 65] }}           numbers in these bins: up to 18, up to 65, above
#   {{ bins = 0.2 }}               numbers in bins of a fifth of the records
#   {{ bounds = [0, 120] }}        numbers that stay numbers, for sums of naive Bayes
#   {{ categorical = true }}       numbers or dates that are names
#   {{ ignore_case = true }}       "yes" and "YES" are one state
#   {{ aggregate = "max" }}        several rows a person: the largest number, or declared state
# A name with a space needs quotes: "blood pressure" = {{ cut = [120, 140] }}
[variables]
{variables}

[policy]                         # what this site answers
# free_tables = false            # false: only studies that its owner approves (`vertibayes
                                 # approve`); true: any query within the bounds below
# most_failed_runs = 10          # of one approved study: runs that began and released nothing
most_variables = 8               # in one table
fewest_records = 10              # that a table counts or leaves out, or that tables differ in
most_row_sets = 50
most_cells = 20_000_000          # in one query
most_memory = "1GiB"             # of one query at this party
most_minutes = 60                # of work of all parties in one query, by its estimate
most_stored = "16GiB"            # masked columns of all sites, in memory and a temporary file
most_failed_meets = 100          # comparisons with other sites' lists of people that differed
# most_sessions = 8              # at the same time; several analysts share it equally
most_released_tables = 1_000     # by approved studies, ever
most_released_cells = 100_000    # in these tables together
most_choice_bits = 5_000         # of the winners of choices in approved studies, ever
# exact_sums = false             # sums without noise over sites that hold other records
# exact_neighbours = false       # show own statistics to neighbours in a calibration, without noise
# most_epsilon = 1.0             # privacy budget of all sums and tables with noise, ever
# most_delta = 1e-5
# most_scores = 0                # records whose scores the analyst may learn, ever
# dishonest = 0.0                # share of the sites that this site takes for accomplices, at least
"""

_PEERS = """
[{role}]    # their public keys, as they read them to you: by telephone, not by e-mail
{keys}
"""

_ROSTER = """
# The keys of all other parties are in the roster of the coordinator, which
# `vertibayes roster pin {file} roster-1.json` pins here, after a question.
"""

_STUDY = """\
# The owner of each site approves this file with `vertibayes approve study.toml`, and approves it
# again after any change of it. `vertibayes check study.toml` prints the digest that they compare.

[study]
folder = "study"                 # what the analyst keeps of the study
variables = [{variables}]
{sites}# memory = "1GiB"                # of one query at a party; as the sites allow if not given
"""

_RUN = """
# [alignment]                    # the study is of the people whom all sites hold
# rules = ["exact"]              # as the sites have them, one for each column of id_column
# sizes = { a = 10_000 }         # public sizes of the lists of people: shorter ones are padded
# level = 1                      # 2: no site learns which of its people are in the study
# everyone = ["a"]               # sites that hold everybody in the study; all if not given
# apart = [["b", "c"]]           # sites that hold rows of one variable, of different people
# fewest = 10                    # people of the study, at least

# [run]
# patience = "10 min"            # how long a run that breaks begins again, from its last step
"""

_LEARNING = """
[learning]
max_parents = 3
# algorithm = "hybrid"           # the default; or hill_climbing, pc, chow_liu, tan, k2
# most_bits = 1_000              # hybrid, hill_climbing: bits of winners at which the search ends
# constraints = "experts.json"   # required and forbidden edges, tiers, roots, leaves
# class_variable = "a"           # tan: the class
# ordering = ["a", "b"]          # k2: all variables, causes before effects
# structure = "structure.json"   # learn only the CPTs of this structure
# missing = "em"                 # em, synthetic, available or state
# pseudo_count = 0.5             # added to each cell of the CPTs; 0: maximum likelihood
# structure_records = 10_000     # learn the structure on a sample of this size

[release]                        # what leaves: the learned arcs, and one table for each variable
rule = "cut"                     # cut, rounded, laplace, gaussian or exact
fewest = 10                      # cut: a count below it is released as 0; rounded: to its multiples
# epsilon = 1.0                  # laplace, gaussian: privacy budget of all tables together
# delta = 1e-6                   # gaussian
runs = 1                         # how often the study may be run
# Without [release] the analyst asks for exact tables of any variables: sites answer that only if
# their policy sets free_tables = true.

# [validation]
# target = "a"
# validate = ["scv"]             # scv, public; svdg only without [release]
# folds = 10

# Naive Bayes in place of a Bayesian network: replace [learning] and [release] by
# [states]                       # the states of each variable; those of the data if not given
# a = ["no", "yes"]
# [numbers]                      # the bounds of variables that stay numbers at the sites
# b = [0, 120]
# [learning]
# learner = "naive_bayes"
# method = "hdpnb"               # hdpnb: sites hold records; vdpnb: sites hold columns
# target = "a"
# epsilon = 0.5                  # or noise = "none"
# via = "masked"                 # sites may fail during the sum; or additive
# most_records = 1000            # of one site
# dropouts = 0.1                 # share of the sites that may be missing

# Calibration without a server: [states] and [numbers] as of naive Bayes, and
# [network]                      # which sites are neighbours
# kind = "ring"                  # chain, ring, star or complete; or edges = [["a", "b"], ...]
# [learning]
# learner = "calibration"
# target = "a"
# most_records = 1000            # of one site; little more than the largest has: it sets the steps
# shown = false                  # true: neighbours see each other's statistics

# Prediction of the study's records: `vertibayes predict --study study.toml`; replace [learning] by
# [learning]
# learner = "prediction"
# model = "model.json"           # the owner of each site needs this file to approve the study
# target = "a"
# evidence = ["b", "c"]          # all variables of the study that the model has, if not given
# may_be_missing = ["b"]         # variables of the evidence of which sites miss values
# and in [release] remove rule (probabilities of each record), or keep it (the AUC alone)
"""


@dataclass(frozen=True)
class Names:
    """The names of the parties."""

    sites: tuple[Party, ...]
    dealer: Party = "dealer"
    analysts: tuple[Party, ...] = ("analyst",)

    def __post_init__(self) -> None:
        party_names(self.parties)
        if not self.sites:
            raise ValueError("--sites is empty; name at least one site")
        if not self.analysts:
            raise ValueError("--analyst is empty; name at least one analyst")

    @property
    def parties(self) -> tuple[Party, ...]:
        """All parties except the relay."""
        return (*self.sites, self.dealer, *self.analysts)


def init(
    folder: Path,
    names: Names,
    *,
    practice: bool = False,
    relay_address: str | None = None,
    variables: Mapping[Party, Sequence[str]] | None = None,
    roster: bool = False,
) -> list[Path]:
    """Write a file for each party."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"--out {folder}: it has files; specify a new or empty folder")
    where = address(relay_address or (PRACTICE_ADDRESS if practice else EXAMPLE_ADDRESS))
    if practice and not is_this_machine(where.rpartition(":")[0]):
        raise ValueError(f"--practice needs a relay on this machine, got {where}")
    keys = {name: f"paste the public key of {name}" for name in names.parties}
    if practice:
        keys = {name: _new_key(folder, name) for name in names.parties}
    shown = (_PRACTICE if practice else _CERTIFICATES).format
    relays = {
        kind: _RELAY.format(address=where, certificates=shown(kind=kind))
        for kind in ("client", "server")
    }
    written = []
    for name, file, text in _texts(names, keys, relays, variables or {}, roster):
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _new_key(folder: Path, name: Party) -> str:
    return public_text(make_private(folder / name / f"{name}.key"))


def _texts(
    names: Names,
    keys: Mapping[Party, str],
    relays: Mapping[str, str],
    variables: Mapping[Party, Sequence[str]],
    roster: bool,
) -> Iterator[tuple[Party, str, str]]:
    """Yield the parties, each with the name of its file and the text."""

    def one(role: str, name: Party, why: str) -> str:
        return _PINNED.format(role=role, name=name, why=why, key=keys[name])

    def several(role: str, parties: Sequence[Party]) -> str:
        lines = "\n".join(f'{name} = "{keys[name]}"' for name in parties)
        return _PEERS.format(role=role, keys=lines)

    def analysts(why: str) -> str:
        first, *others = names.analysts
        return several("analysts", names.analysts) if others else one("analyst", first, why)

    def text(role: str, name: Party, body: str, file: str, *pinned: str, then: str = "") -> str:
        own = _OWN.format(role=role, name=name) + body
        pins = _ROSTER.format(file=file) if roster else "".join(pinned)
        return own + pins + then + relays["client"] + _PATIENCE

    for site in names.sites:
        offered = "\n".join(f"{_key(name)} = {{}}" for name in variables.get(site) or ["example"])
        pinned = [
            one("dealer", names.dealer, "deals masks; holds no data"),
            analysts("tables are revealed to it"),
            several("peers", [name for name in names.sites if name != site]),
        ]
        body = _SITE.format(variables=offered)
        yield site, "site.toml", text("site", site, body, "site.toml", *pinned)
    sites = several("sites", names.sites)
    pinned = [analysts("it deals for the analyst's queries"), sites]
    yield names.dealer, "dealer.toml", text("dealer", names.dealer, "", "dealer.toml", *pinned)
    shown = dict.fromkeys(v for site in names.sites for v in variables.get(site, ()))
    chosen = f"sites = [{', '.join(map(_key, names.sites))}]    # as the roster names them\n"
    head = _STUDY.format(
        variables=", ".join(map(_key, shown or ["example"])), sites=chosen if roster else ""
    )
    pinned = [one("dealer", names.dealer, "the dealer that the sites have pinned"), sites]
    for name in names.analysts:
        body = text("analyst", name, "", "study.toml", *pinned, then=_LEARNING + _RUN)
        yield name, "study.toml", f"{head}\n{body}"
    yield RELAY, "relay.toml", relays["server"].lstrip() + _REVOKED


def _key(name: str) -> str:
    """Return a variable's name as a quoted key of TOML."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
