"""Parts of configuration files: names, addresses, data, policy."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignmentLimits, AlignmentRequest
from vertibayes_protocols.deployment.tables import Table, TomlFile
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.settings import SITE_DATA, VARIABLE, Setting
from vertibayes_protocols.site.identifiers import rule_of
from vertibayes_protocols.site.sources.database import Database
from vertibayes_protocols.transports.mailbox import Patience
from vertibayes_protocols.transports.nvflare import NAME, RESERVED
from vertibayes_protocols.transports.tls import Certificates

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")  # the transport takes no IPv6

POLICY = (
    Setting("most_variables", "whole", "Maximum number of variables in one table.",
            Policy.most_variables, least=1),
    Setting("fewest_records", "whole", "Minimum number of records that a table counts, leaves out, "
            "or differs in from others.", Policy.fewest_records, least=1),
    Setting("most_row_sets", "whole", "Maximum number of different record sets, in all studies.",
            Policy.most_row_sets, least=1),
    Setting("most_cells", "whole", "Maximum number of cells in the tables of one query.",
            Policy.most_cells, least=1),
    Setting("most_failed_meets", "whole", "Maximum number of lists of people from another site "
            "that differ from this site's, since the last equal list.",
            Policy.most_failed_meets, least=1),
    Setting("most_sessions", "whole", "Maximum number of sessions at the same time; several "
            "analysts share it equally.", Policy.most_sessions, least=1),
    Setting("most_released_tables", "whole", "Maximum number of tables that approved studies "
            "release, in all studies.", Policy.most_released_tables, least=1),
    Setting("most_released_cells", "whole", "Maximum number of cells of these tables together.",
            Policy.most_released_cells, least=1),
    Setting("most_choice_bits", "whole", "Maximum number of bits of the winners of choices in "
            "approved studies.", Policy.most_choice_bits, least=1),
    Setting("most_memory", "size", "Memory that one query may take at this party.",
            Policy.most_memory, least=1),
    Setting("most_minutes", "number", "Minutes of work of all parties that one query may take, by "
            "its estimate.", Policy.most_minutes, least=0),
    Setting("most_stored", "size", "Masked columns that one study may store at this party, in "
            "memory and in a temporary file.", Policy.most_stored, least=1),
    Setting("exact_sums", "flag", "Take part in sums without noise over sites with other records.",
            Policy.exact_sums),
    Setting("exact_neighbours", "flag", "Show this site's own statistics, without noise, to its "
            "neighbours in a calibration.", Policy.exact_neighbours),
    Setting("most_epsilon", "number", "Privacy budget: the sum of the epsilon of all releases with "
            "noise that this site takes part in.", Policy.most_epsilon, least=0),
    Setting("most_delta", "number", "Privacy budget: the sum of the delta of all releases.",
            Policy.most_delta, least=0),
    Setting("most_scores", "whole", "Maximum number of records whose scores leave, in all studies.",
            Policy.most_scores, least=0),
    Setting("dishonest", "number", "Share of the members of a sum that must be allowed to work "
            "with the analyst, at least.", Policy.dishonest, least=0, below=1),
    Setting("free_tables", "flag", "Answer any query within this policy, exact tables included; "
            "otherwise approved studies alone.", Policy.free_tables, old="exact_tables"),
    Setting("most_failed_runs", "whole", "Maximum number of runs of an approved study that begin "
            "and release nothing.", Policy.most_failed_runs, least=1),
)  # fmt: skip

MATCHING = (  # of a site: how it matches its list of people
    Setting("rules", "list", "Rule of each column of id_column: exact, text, digits, name, or a "
            "date with its format.", ()),
    Setting("duplicates", "text", "What to do with records that share an identifier: refuse the "
            "data, or drop all of these records.", "refuse", choices=("refuse", "drop")),
    Setting("least_level", "whole", "Smallest level of an alignment in which this site takes part: "
            "at level 1 sites learn which of their people are in the study.",
            AlignmentLimits.least_level, least=1, most=2),
    Setting("most_people", "sizes", "Largest public size of each site's list, by site, also of "
            "its own; ten times the number of own people for others.", {}),
    Setting("most_alignments", "whole", "Maximum number of alignments that begin, in all studies.",
            AlignmentLimits.most_alignments, least=1),
)  # fmt: skip
ALIGNMENT = (  # of a study: who is in it
    Setting("level", "whole", "1: each site learns which of its people are in the study; 2: no "
            "site does.", AlignmentRequest.level, least=1, most=2),
    Setting("rules", "list", "Rule of each column of the identifier, as the sites have them.",
            AlignmentRequest.rules, least=1),
    Setting("sizes", "sizes", "Public sizes of the sites' lists; their numbers of people if not "
            "given.", {}),
    Setting("everyone", "texts", "Sites that hold everybody of the study; those that alone hold a "
            "variable if not given."),
    Setting("apart", "pairs", "Pairs of sites that hold different people; those that share a "
            "variable if not given."),
    Setting("fewest", "whole", "Minimum number of people of the study.", AlignmentRequest.fewest,
            least=1),
)  # fmt: skip

WAITS = Patience()
PATIENCE = (
    Setting("silent", "seconds", "For a message of a party that can be reached: it may be "
            "computing.", WAITS.silent, above=0),
    Setting("gone", "seconds", "For a party, or the relay, that cannot be reached: it may come "
            "back.", WAITS.gone, above=0),
    Setting("probe", "seconds", "Between two checks whether a party that is awaited can be "
            "reached.", WAITS.probe, above=0),
    Setting("hello", "seconds", "For the parties of a session that begins.", WAITS.hello, above=0),
)  # fmt: skip


@dataclass(frozen=True)
class RelayAddress:
    """Where the relay is, and the certificates that a party shows to it.

    Without certificates, anybody who reaches the relay can take any name. This is for practice on
    one machine: `relay_of` refuses it for any other address.
    """

    address: str
    certificates: Certificates | None

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The host and the port of the address."""
        host, _, port = self.address.rpartition(":")
        return host, int(port)


@dataclass(frozen=True)
class VariableSpec:
    """How one column becomes a variable: the values of `vertibayes_protocols.settings.VARIABLE`."""

    states: tuple[str, ...] = ()
    cut: tuple[Decimal, ...] = ()
    categorical: bool = False
    bins: float | None = None
    ignore_case: bool = False
    bounds: tuple[float, float] | None = None
    aggregate: str | None = None


@dataclass(frozen=True)
class Matching:
    """How a site matches its list of people with other sites: the values of `MATCHING`."""

    rules: tuple[str, ...]
    drop: bool
    limits: AlignmentLimits


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where a site's table is, and how it is read: the values of `settings.SITE_DATA`."""

    file: Path | None
    database: str | Path | None
    table: str | None
    query: str | None
    password_variable: str | None
    id_column: tuple[str, ...]
    missing_codes: tuple[str, ...]
    bins: float
    max_states: int
    binning: str
    keep_spaces: bool
    strict: bool
    aggregate: str | None
    order_by: str | None

    @property
    def place(self) -> Path | Database:
        """The file or the database."""
        of_database = "table", "query", "password_variable"
        if self.database is not None:
            if self.file is not None:
                raise ValueError("file and database exclude each other: give one of them")
            return Database(self.database, **{name: getattr(self, name) for name in of_database})
        if self.file is None:
            raise ValueError("file is missing; expected the path of a file, or `database`")
        for name in of_database:
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is for a database, and `database` is missing")
        return self.file

    @property
    def keys(self) -> str | None:
        """The column of identifiers, if it is one; several columns repeat their values."""
        return self.id_column[0] if len(self.id_column) == 1 else None

    @property
    def title(self) -> str:
        """The file or database in errors, without credentials."""
        place = self.place
        return place.title if isinstance(place, Database) else str(place)


def party_name(text: str) -> Party:
    """Return a party's name."""
    if NAME.fullmatch(text) is None or text in RESERVED:
        raise ValueError(
            f"{text!r} is not a valid name: expected 1 to 63 letters, digits, - and _, none of "
            f"{', '.join(RESERVED)}"
        )
    return text


def party_names(texts: Sequence[str]) -> list[Party]:
    """Return the names of several parties."""
    names = [party_name(text) for text in texts]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} appears twice: each party needs a name of its own")
    return names


def own_party(table: Table) -> tuple[Party, Path]:
    """Return the name and the key file of the party whose file it is."""
    return table.made("name", party_name), table.path("key")


def address(text: str) -> str:
    """Return the address of a relay."""
    name, _, port = text.rpartition(":")
    good = HOST.fullmatch(name) and re.fullmatch(r"[0-9]{1,5}", port)
    if not good or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is not an address: expected HOST:PORT, HOST a name or IPv4")
    return text


def host_name(text: str) -> str:
    """Return a host name or an IPv4 address."""
    if HOST.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a host: expected a host name or an IPv4 address")
    return text


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def relay_of(file: TomlFile) -> RelayAddress:
    """Return the relay's address and certificates, from its table."""
    table = file.table("relay")
    relay = _relay(file, table)
    table.end()
    return relay


def listening_relay_of(file: TomlFile) -> tuple[RelayAddress, Path]:
    """Return the same from the relay's own file, and its list of revoked certificates."""
    table = file.table("relay")
    relay, revoked = _relay(file, table), table.path("revoked", "revoked.txt")
    table.end()
    return relay, revoked


def _relay(file: TomlFile, table: Table) -> RelayAddress:
    where = table.made("address", address)
    certificates = _certificates(table)
    relay = RelayAddress(where, certificates)
    if certificates is None and not is_this_machine(relay.host_and_port[0]):
        reason = "root, certificate and key are missing: only a relay on this machine needs none"
        raise file.error(("relay", "address"), reason)
    return relay


def _certificates(table: Table) -> Certificates | None:
    names = "root", "certificate", "key"
    given = [name for name in names if name in table]
    if not given:
        return None
    if len(given) < len(names):
        raise table.error(given[0], "root, certificate and key belong together: give all three")
    return Certificates(*(table.path(name) for name in names))


def policy_of(file: TomlFile, variables: tuple[str, ...] | None) -> Policy:
    """Return a policy over variables, from its table."""
    table = file.table("policy")
    values = table.take_all(POLICY)
    table.end()
    return Policy(variables, **values)


def patience_of(file: TomlFile) -> Patience:
    """Return how long a party waits for others, from its table."""
    table = file.table("patience")
    patience = Patience(**table.take_all(PATIENCE))
    table.end()
    if patience.probe > patience.gone:
        reason = f"must be at most gone, {patience.gone:g} seconds, got {patience.probe:g}"
        raise table.error("probe" if "probe" in table else "gone", reason)
    return patience


def data_of(file: TomlFile, variables: Mapping[str, VariableSpec]) -> DataSource:
    """Return where a site's data are, from its table."""
    table = file.table("data")
    source = DataSource(**table.take_all(SITE_DATA))
    if source.database is not None and "://" not in str(source.database):
        if re.search(r"\b(host|user|dbname|password)\s*=", str(source.database)):
            reason = (
                "a connection string; expected postgresql://USER@HOST:PORT/NAME, without a "
                "password, or the path of a DuckDB file"
            )
            raise table.error("database", reason)
        source = replace(source, database=table.path("database"))
    table.end()
    try:
        source.place  # noqa: B018
    except ValueError as error:
        raise table.error("database" if "database" in table else "file", str(error)) from None
    rules = {name: spec.aggregate or source.aggregate for name, spec in variables.items()}
    if source.order_by is None and set(rules.values()) & {"first", "last"}:
        raise table.error("order_by", "missing; first and last need a column that orders the rows")
    for name in source.id_column:
        if name in variables:
            reason = f"{name!r} is also in [variables]; identifiers never leave a site"
            raise table.error("id_column", reason)
    return source


def matching_of(file: TomlFile, source: DataSource, peers: Collection[Party]) -> Matching | None:
    """Return how a site matches its list of people with others; None without [alignment]."""
    if "alignment" not in file.values:
        return None
    table = file.table("alignment")
    values = table.take_all(MATCHING)
    table.end()
    rules = _rules(table, values["rules"] or ("exact",) * len(source.id_column))
    if len(rules) != len(source.id_column):
        columns = ", ".join(source.id_column)
        reason = f"each column of id_column needs a rule: {columns}; got {', '.join(rules)}"
        raise table.error("rules", reason)
    most = values["most_people"]
    if strangers := sorted(set(most) - set(peers)):
        reason = f"{strangers[0]!r} is not a site that this file pins: {', '.join(sorted(peers))}"
        raise table.error("most_people", reason)
    limits = AlignmentLimits(values["least_level"], most, values["most_alignments"])
    return Matching(rules, values["duplicates"] == "drop", limits)


def alignment_of(file: TomlFile) -> AlignmentRequest | None:
    """Return the alignment that a study's file asks for; None without [alignment]."""
    if "alignment" not in file.values:
        return None
    table = file.table("alignment")
    values = table.take_all(ALIGNMENT)
    table.end()
    values["rules"] = _rules(table, values["rules"])
    if values["apart"] is not None:
        values["apart"] = tuple((one, other) for one, other in values["apart"])
    return AlignmentRequest(**values)


def _rules(table: Table, rules: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a rule of identifiers that does not exist."""
    for rule in rules:
        try:
            rule_of(rule)
        except ValueError as error:
            raise table.error("rules", str(error)) from None
    return rules


def variables_of(file: TomlFile) -> dict[str, VariableSpec]:
    """Return how each offered column becomes a variable, from its table."""
    specs = {name: _variable(table) for name, table in file.table("variables").tables()}
    if not specs:
        raise file.error(("variables",), "it is empty; name at least one variable")
    return specs


def _variable(table: Table) -> VariableSpec:
    spec = VariableSpec(**table.take_all(VARIABLE))
    table.end()
    ways = [name for name in ("states", "cut", "categorical", "bins", "bounds") if name in table]
    if len(ways) > 1:
        raise table.error(ways[1], f"{' and '.join(ways)} exclude each other: give one of them")
    return spec
