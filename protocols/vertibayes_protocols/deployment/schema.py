"""What `vertibayes schema` prints: a draft of a site's variables, and where two files differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from vertibayes_protocols.deployment.data import ADVICE
from vertibayes_protocols.deployment.parts import VariableSpec, data_of, policy_of, variables_of
from vertibayes_protocols.deployment.tables import TomlFile, quoted
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.policy import Policy
from vertibayes_protocols.site.drafting import Draft, draft, identifies
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Finding
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.text import same_length
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.variables import for_terminals

HEAD = """\
# A draft from {records} records of {title}: edit it, and put it into site.toml.
# The comments quote values of the data: show this draft to nobody else.
"""


def draft_schema(path: Path) -> str:
    """Return the draft of the variables of a table, as TOML."""
    if path.suffix == ".toml":
        file = TomlFile.read(path)
        source, fewest = data_of(file, {}), policy_of(file, None).fewest_records
        columns = read_table(source.place, keep_spaces=source.keep_spaces, dialect=source.dialect)
        for name in source.id_column:
            if name not in columns:
                raise DataError(f"{source.title}: no column {name!r} (id_column)")
        encoding = Encoding(
            source.missing_codes,
            max_states=source.max_states,
            advice=ADVICE,
            fewest=fewest,
            keep_na=source.keep_na,
        )
        return _text(source.title, columns, source.id_column, encoding, data="")
    columns = read_table(path)
    keys = next((name for name, column in columns.items() if identifies(column)), None)
    data = f"[data]\nfile = {quoted(str(path))}\n" + (
        f"id_column = {quoted(keys)}    # a different value in every record\n"
        if keys is not None
        else '# id_column = "..."    # of people; no column has a different value in each record\n'
    )
    named = [keys] if keys is not None else []
    return _text(
        str(path),
        columns,
        named,
        Encoding(advice=ADVICE, fewest=Policy().fewest_records),
        data=f"\n{data}",
    )


def _text(
    title: str,
    columns: Mapping[str, TextColumn],
    keys: Sequence[str],
    encoding: Encoding,
    data: str,
) -> str:
    records = same_length(title, columns)
    drafts = {n: draft(n, column, encoding) for n, column in columns.items() if n not in keys}
    if all(one.left_out for one in drafts.values()):
        raise DataError(f"{title}: no column can be a variable as it is")
    lines = [line for name, one in drafts.items() for line in _lines(name, one)]
    head = HEAD.format(records=records, title=title)
    return f"{head}{data}\n[variables]\n" + "".join(f"{line}\n" for line in lines)


def _lines(name: str, one: Draft) -> list[str]:
    if one.left_out is not None:
        return [_comment(name, one.left_out, "left out: ")]
    shown = ", ".join(f"{way} = [{_listed(values)}]" for way, values in one.spec.items())
    spec = f"{{ {shown} }}" if shown else "{}"
    missing = f"    # {one.missing:.1%} missing" if one.missing else ""
    notes = [_comment(name, finding, "") for finding in one.findings]
    return [f"{quoted(name)} = {spec}{missing}", *notes]


def _comment(name: str, finding: Finding, before: str) -> str:
    remedy = ADVICE.of(finding.remedy, [name])
    text = f"{name}: {before}{finding.what}{'; ' if remedy else ''}{remedy}"
    return for_terminals(f"# {' '.join(text.split())}")


def _listed(values: Sequence[str] | Sequence[Decimal]) -> str:
    return ", ".join(quoted(v) if isinstance(v, str) else f"{v:f}" for v in values)


# ---- two files -----------------------------------------------------------------------------------


def compare_schemas(one: Path, other: Path) -> tuple[list[str], int]:
    """Return where two files declare variables differently, and how many variables they share."""
    first, second = (variables_of(TomlFile.read(path)) for path in (one, other))
    shared = [name for name in first if name in second]
    lines = [
        f"{name}: {difference}"
        for name in shared
        for difference in _differences(first[name], second[name], str(one), str(other))
    ]
    return lines, len(shared)


def _differences(a: VariableSpec, b: VariableSpec, one: str, other: str) -> list[str]:
    """Return how two declarations of a variable differ, in words."""
    if a == b:
        return []
    if a.states and b.states and a.states != b.states:
        only = [(one, [s for s in a.states if s not in b.states])]
        only += [(other, [s for s in b.states if s not in a.states])]
        named = [f"states of {where} alone: {_listed(states)}" for where, states in only if states]
        order = f"the same states in another order: {_listed(a.states)}; {_listed(b.states)}"
        lines = named or [order]
    elif a.cut and b.cut and a.cut != b.cut:
        lines = [f"other bins: cut = [{_listed(a.cut)}]; cut = [{_listed(b.cut)}]"]
    elif _way(a) != _way(b):
        lines = [f"{one} has {_way(a)}, {other} has {_way(b)}"]
    else:
        lines = []
    more = [
        f"{name} is {getattr(a, name)!r} in {one}, {getattr(b, name)!r} in {other}"
        for name in ("ignore_case", "aggregate")
        if getattr(a, name) != getattr(b, name)
    ]
    return lines + more


def _way(spec: VariableSpec) -> str:
    if spec.states:
        return f"states = [{_listed(spec.states)}]"
    if spec.cut:
        return f"cut = [{_listed(spec.cut)}]"
    if spec.bounds is not None:
        return f"bounds = [{spec.bounds[0]:g}, {spec.bounds[1]:g}]"
    if spec.bins is not None:
        return f"bins = {spec.bins:g}"
    return "categorical = true" if spec.categorical else "the states of its data"
