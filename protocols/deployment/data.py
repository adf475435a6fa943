"""A site's data, read and encoded as its `site.toml` says."""

from __future__ import annotations

from protocols.deployment.files import SiteFile
from protocols.deployment.parts import DataSource, VariableSpec
from protocols.errors import DataError
from protocols.site.alignment import check_ids, order_of
from protocols.site.binning import bin_names
from protocols.site.data import SiteData
from protocols.site.encoding import Advice, Encoded, Encoding, encode, encode_known
from protocols.site.text import TextColumn, read_columns

ADVICE = Advice(
    leave_out="leave it out of [variables]",
    more_states="raise most_states",
    identifies="it is no variable",
    missing="name it in missing_codes",
    word="name it in missing_codes if it says missing, or make the variable { categorical = true }",
)


def read_data(site: SiteFile) -> SiteData:
    """Read a site's records, of the variables that it offers, in the order of their identifiers.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, or one cannot be encoded.
    """
    source = site.data
    columns = read_columns(source.file)
    if source.record_key not in columns:
        raise DataError(f"{source.file}: no column {source.record_key!r} (record_key)")
    lacking = [name for name in site.variables if name not in columns]
    if lacking:
        told = f"no column {', '.join(lacking)} ([variables]); there are {', '.join(columns)}"
        raise DataError(f"{source.file}: {told}")
    check_ids(str(source.file), f"record_key {source.record_key!r}", columns[source.record_key])
    encoded = {  # before they are put in order: errors name the file's own records
        name: _encoded(name, columns[name], spec, source) for name, spec in site.variables.items()
    }
    order = order_of(columns[source.record_key])
    variables = {name: found.variable for name, found in encoded.items()}
    codes = {name: found.codes[order] for name, found in encoded.items()}
    return SiteData(variables, codes, columns[source.record_key].take(order))


def _encoded(name: str, column: TextColumn, spec: VariableSpec, source: DataSource) -> Encoded:
    states = bin_names(spec.edges) if spec.edges else spec.states
    how = Encoding(
        source.missing_codes,
        {name: states} if states else {},
        (name,) if spec.categorical else (),
        spec.bins or source.bins,
        source.most_states,
        ADVICE,
    )
    encoded = (encode_known if spec.edges else encode)(str(source.file), name, column, how)
    try:
        encoded.variable.check_printable()
    except ValueError as error:
        raise DataError(f"{source.file}: {error}") from None
    return encoded
