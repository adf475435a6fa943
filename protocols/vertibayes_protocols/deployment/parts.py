"""Parts of configuration files: names, addresses, data, policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

from vertibayes_mpc.rounds import Party
from vertibayes_protocols.alignment import AlignmentLimits, AlignmentRequest
from vertibayes_protocols.deployment.keys import check_secret
from vertibayes_protocols.deployment.tables import Table, TomlFile
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.public_keys import decode_signing
from vertibayes_protocols.settings import (
    COLUMNS,
    ID_COLUMN,
    REQUIRED,
    RULES,
    Setting,
    declared,
    settings_of,
)
from vertibayes_protocols.site.dialect import Dialect
from vertibayes_protocols.site.identifiers import rule_of
from vertibayes_protocols.site.sources.database import Database
from vertibayes_protocols.transports.mailbox import NAME, RELAY, RESERVED, Patience
from vertibayes_protocols.transports.route import (
    HOST,
    NO_PROXY,
    PROXY,
    Route,
    host_and_port,
    is_this_machine,
    parsed,
)
from vertibayes_protocols.transports.tls import Certificates

TRUST = Setting("trust", "text", default="root", choices=("root", "system"))  # for the outer TLS
TLS = Setting("tls", "flag", default=True)  # at the relay; a reverse proxy ends it if not

SECOND = Setting("second_person", "text")  # its public key, as `keygen` prints it

OWN_TABLES = {  # by the role in a roster: the table that its own file has; others name the dealer
    "site": "site", "dealer": "dealer", RELAY: "relay", "analyst": "study",
}  # fmt: skip
ROOT = "rootCA.pem"  # of the certificates of all parties
OWN_FILES = {role: f"{table}.toml" for role, table in OWN_TABLES.items()}

PATIENCE = tuple(
    Setting(name, "seconds", default=seconds, above=0)
    for name, seconds in Patience._field_defaults.items()
)


@dataclass(frozen=True)
class VariableSpec:
    """How one column becomes a variable."""

    states: tuple[str, ...] = declared("texts", (), least=2)  # in order; else those of the data
    cut: tuple[Decimal, ...] = declared("edges", (), least=1, old="edges")  # inner edges of bins
    categorical: bool = declared("flag", False)  # numbers or dates are names: never binned
    bins: float | None = declared("bins")  # how many, or the share of the records in each
    ignore_case: bool = declared("flag", False)  # values that differ only in case are one state
    bounds: tuple[float, float] | None = declared("bounds")  # numbers for sums, without states
    aggregate: str | None = declared("text", choices=RULES)  # of a person's rows


METRICS = "127.0.0.1:9464"  # where a monitor asks a party


@dataclass(frozen=True)
class Matching:
    """How a site matches its list of people with other sites."""

    rules: tuple[str, ...] = declared("list", ())  # of each column of id_column; else exact
    duplicates: str = declared("text", "refuse", choices=("refuse", "drop"))  # of identifiers
    limits: AlignmentLimits = field(default_factory=AlignmentLimits)


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where a site's table is, and how it is read."""

    file: Path | None = declared("path")  # CSV, Parquet, or a folder of Parquet files
    database: str | Path | None = declared("text")  # else postgresql://..., or a DuckDB file
    table: str | None = declared("text")  # of the database
    query: str | None = declared("text")  # else a select that returns the records
    password_variable: str | None = declared("text")  # of the environment
    aggregate: str | None = declared("text", choices=RULES)  # of variables that do not say it
    order_by: str | None = declared("text")  # the column by which first and last order rows
    # Undeclared states that fewer than fewest_records people have: one state, or as they are.
    rare_states: str = declared("text", "merge", choices=("merge", "keep"))
    id_column: tuple[str, ...] = declared("columns", REQUIRED, old=ID_COLUMN.old)
    missing_codes: tuple[str, ...]  # this and what follows: `COLUMNS`
    bins: float
    max_states: int
    binning: str
    keep_spaces: bool
    strict: bool
    separator: str | None
    decimal: str | None
    encoding: str | None
    keep_na: bool

    @property
    def dialect(self) -> Dialect:
        """How a CSV file is written."""
        return Dialect(self.separator, self.decimal, self.encoding)

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


def tls_name(party: Party) -> str:
    """Return the name of a party's certificate and of its key, without .crt and .key."""
    return "server" if party == RELAY else "client"


def own_party(table: Table) -> tuple[Party, Path]:
    """Return the name and the key file of the party whose file it is."""
    return table.made("name", party_name), table.path("key")


def address(text: str) -> str:
    """Return the address of a relay, as it listens."""
    if "://" in text or parsed(text) is None:
        raise ValueError(f"{text!r} is not an address: expected HOST:PORT, HOST a name or IPv4")
    return text


def reached_address(text: str) -> str:
    """Return the address by which a party reaches the relay."""
    if "://" not in text:
        return address(text)
    if parsed(text) is None:
        raise ValueError(f"{text!r} is not an address: expected wss://HOST[:PORT][/PATH]")
    return text


def proxy(text: str) -> str:
    """Return a proxy's address; an error does not repeat it, as it may have a password."""
    if text != NO_PROXY and PROXY.fullmatch(text) is None:
        form = f"SCHEME://USER:PASSWORD@HOST:PORT (http or https) or {NO_PROXY}"
        signs = "with %40 for @, %3A for : and %2F for / in user and password"
        raise ValueError(f"not the address of a proxy: expected {form}, {signs}")
    return text


def proxy_in(table: Table) -> str | None:
    """Take the proxy to the relay; with a password, the file must be the party's alone."""
    if "proxy" not in table:
        return None
    found = table.made("proxy", proxy)
    if "@" in found:
        with table.at("proxy"):
            check_secret(table.file.path)
    return found


def host_name(text: str) -> str:
    """Return a host name or an IPv4 address."""
    if HOST.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a host: expected a host name or an IPv4 address")
    return text


def relay_of(table: Table) -> Route:
    """Take how a party reaches the relay."""
    route = _route(table, reached_address)
    trust = table.take(TRUST)
    if route.certificates is None and trust != TRUST.default:
        raise table.error(TRUST.name, "root, certificate and key are missing: there is no TLS")
    return route._replace(trust=trust, proxy=proxy_in(table))


def listening_of(table: Table) -> Route:
    """Take where the relay listens, and whether it ends TLS itself."""
    return _route(table, address)._replace(tls=table.take(TLS))


def _route(table: Table, of: Callable[[str], str]) -> Route:
    if "address" not in table:
        reason = "missing; expected HOST:PORT, which `vertibayes fetch` writes"
        raise table.error("address", reason)
    where = table.made("address", of)
    given = [name for name in Certificates._fields if name in table]
    if given and len(given) < len(Certificates._fields):
        raise table.error(given[0], "root, certificate and key belong together: give all three")
    if not given and (where.startswith("wss:") or not is_this_machine(host_and_port(where)[0])):
        reason = "root, certificate and key are missing: only a relay on this machine needs none"
        raise table.error("address", reason)
    return Route(where, Certificates(*map(table.path, given)) if given else None)


def metrics_of(file: TomlFile) -> str | None:
    """Return where a party answers a monitor; None without [metrics]."""
    if "metrics" not in file.values:
        return None
    with file.table("metrics") as table:
        return table.made("address", address, METRICS)


def policy_of(file: TomlFile, variables: tuple[str, ...] | None) -> Policy:
    """Return a policy over variables, from its table; that of a site has SECOND too."""
    more = () if variables is None else (SECOND,)
    values = file.taken("policy", (*settings_of(Policy), *more))
    values.pop(SECOND.name, None)
    return Policy(variables, **values)


def second_of(file: TomlFile) -> bytes:
    """Return the key of the person who must consent to each approval; empty if nobody must."""
    table = file.table("policy")
    if (text := table.take(SECOND)) is None:
        return b""
    with table.at(SECOND.name):
        if not (key := decode_signing(text)):
            raise ValueError("no key for signatures; expected all that `keygen` prints")
    return key


def patience_of(file: TomlFile) -> Patience:
    """Return how long a party waits for others, from its table."""
    patience, table = Patience(**file.taken("patience", PATIENCE)), file.table("patience")
    if patience.probe > patience.gone:
        reason = f"must be at most gone, {patience.gone:g} seconds, got {patience.probe:g}"
        raise table.error("probe" if "probe" in table else "gone", reason)
    return patience


def data_of(file: TomlFile, variables: Mapping[str, VariableSpec]) -> DataSource:
    """Return where a site's data are, from its table."""
    with file.table("data") as table:
        source = DataSource(**table.take_all((*settings_of(DataSource), *COLUMNS)))
        if source.database is not None and "://" not in str(source.database):
            if re.search(r"\b(host|user|dbname|password)\s*=", str(source.database)):
                reason = (
                    "a connection string; expected postgresql://USER@HOST:PORT/NAME, without a "
                    "password, or the path of a DuckDB file"
                )
                raise table.error("database", reason)
            source = replace(source, database=table.path("database"))
    with table.at("database" if "database" in table else "file"):
        source.place  # noqa: B018
    rules = {name: spec.aggregate or source.aggregate for name, spec in variables.items()}
    if source.order_by is None and set(rules.values()) & {"first", "last"}:
        raise table.error("order_by", "missing; first and last need a column that orders the rows")
    for name in source.id_column:
        if name in variables:
            reason = f"{name!r} is also in [variables]; identifiers never leave a site"
            raise table.error("id_column", reason)
    return source


def matching_of(file: TomlFile, source: DataSource, peers: Collection[Party]) -> Matching | None:
    """Return how a site matches its list with others, if it knows them; None without the table."""
    if "alignment" not in file.values:
        return None
    with file.table("alignment") as table:
        values = table.take_all(settings_of(Matching))
        limits = AlignmentLimits(**table.take_all(settings_of(AlignmentLimits)))
    rules = _rules(table, values["rules"] or ("exact",) * len(source.id_column))
    if len(rules) != len(source.id_column):
        columns = ", ".join(source.id_column)
        reason = f"each column of id_column needs a rule: {columns}; got {', '.join(rules)}"
        raise table.error("rules", reason)
    if strangers := sorted(limits.most_people.keys() - set(peers)) if peers else ():
        reason = f"{strangers[0]!r} is not a site that this file pins: {', '.join(sorted(peers))}"
        raise table.error("most_people", reason)
    return Matching(rules, values["duplicates"], limits)


def alignment_of(file: TomlFile) -> AlignmentRequest | None:
    """Return the alignment that a study's file asks for; None without [alignment]."""
    if "alignment" not in file.values:
        return None
    request = AlignmentRequest(**file.taken("alignment", settings_of(AlignmentRequest)))
    _rules(file.table("alignment"), request.rules)
    return request


def _rules(table: Table, rules: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a rule of identifiers that does not exist."""
    with table.at("rules"):
        for rule in rules:
            rule_of(rule)
    return rules


def variables_of(file: TomlFile) -> dict[str, VariableSpec]:
    """Return how each offered column becomes a variable, from its table."""
    specs = {}
    for name, table in file.table("variables").tables():
        with table:
            specs[name] = VariableSpec(**table.take_all(settings_of(VariableSpec)))
        ways = [n for n in ("states", "cut", "categorical", "bins", "bounds") if n in table]
        if len(ways) > 1:
            raise table.error(ways[1], f"{' and '.join(ways)} exclude each other: give one of them")
    if not specs:
        raise file.error(("variables",), "it is empty; name at least one variable")
    return specs
