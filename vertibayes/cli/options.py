"""Options of commands, made of settings, and the values that a user gave them."""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

from vertibayes.cli.folders import check_file, check_folder, check_new
from vertibayes_protocols.settings import REQUIRED, Setting

F = TypeVar("F", bound=Callable[..., None])

TYPES: Mapping[str, Any] = {
    "texts": list[str],
    "repeated": list[str],
    "flag": bool,
    "whole": int,
    "number": float,
    "bins": float,
    "path": Path,
    "any path": Path,
    "folder": Path,
    "new file": Path,
    "names or file": Path,
}  # of option values as the command line reads them; str for other kinds
CHECKS: Mapping[str, Callable[[Path], object]] = {
    "path": check_file,
    "names or file": check_file,
    "folder": check_folder,
    "new file": check_new,
}  # of paths by kind; "any path" is left to the command


def takes(*settings: Setting) -> Callable[[F], F]:
    """Give a command an option for each setting, by name or in ``**given``; see `values_of`.

    Wrong values and files that do not exist are refused before the command imports anything.
    """
    names = {setting.name for setting in settings}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = inspect.Parameter("context", kind, annotation=typer.Context)

    def decorate(command: F) -> F:
        signature = inspect.signature(command, eval_str=True)
        own = {n: p for n, p in signature.parameters.items() if n not in {*names, "given"}}
        parameters = [*({"context": first} | own).values(), *map(_parameter, settings)]

        @wraps(command)
        def checked(context: typer.Context, **given: Any) -> None:
            check_arguments(context.args)
            for setting in settings:
                _check_path(setting, _value(setting, given[setting.name]))
            command(**given, **({"context": context} if "context" in own else {}))

        checked.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        checked.__annotations__ = {p.name: p.annotation for p in parameters}
        return cast("F", checked)

    return decorate


def _check_path(setting: Setting, value: Any) -> None:
    """Refuse a file that does not exist, and results that cannot be written."""
    check = CHECKS.get(setting.kind)
    if check is not None and isinstance(value, Path) and value != setting.default:
        check(value)


def _parameter(setting: Setting) -> inspect.Parameter:
    """Return the parameter of which typer makes an option."""
    default = None if setting.default == () else setting.default
    if default is REQUIRED:
        default = inspect.Parameter.empty
    kind: Any = TYPES.get(setting.kind, str)
    names = [setting.option] if setting.kind == "flag" else []
    shown = setting.shown or "|".join(setting.choices) or None
    limits = f" [{setting.limits}]" if setting.limits else ""
    option = typer.Option(*names, help=setting.help + limits, metavar=shown)
    kind = kind if default is not None else kind | None
    annotation: Any = Annotated[kind, option]
    kept = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(setting.name, kept, default=default, annotation=annotation)


def values_of(settings: Iterable[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings, checked, from those of the command line."""
    return {setting.name: _value(setting, given[setting.name]) for setting in settings}


def _value(setting: Setting, value: Any) -> Any:
    if setting.kind == "texts":
        value = list(dict.fromkeys(text for part in value or () for text in separated(part)))
    try:
        return setting.checked(() if value is None and setting.default == () else value)
    except ValueError as error:
        raise ValueError(f"{setting.option} {error}") from None


def separated(text: str) -> list[str]:
    """Return texts that are separated by commas; one that has a comma is in double quotes.

    Examples
    --------
    >>> separated('a,"b, in kg"')
    ['a', 'b, in kg']
    """
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part for part in parts if part.strip()]


def check_arguments(unexpected: Sequence[str], expected: str = "options") -> None:
    """Refuse arguments that belong to no option."""
    if unexpected:
        raise ValueError(
            f"unexpected argument {unexpected[0]!r}: expected {expected}; separate several values "
            "of an option by commas, as --exclude a,b, or repeat the option"
        )


def check_alone(context: typer.Context, study: Path) -> None:
    """Refuse an argument that is not a study file, and options beside one."""
    if study.suffix != ".toml":
        check_arguments([str(study)], "a study.toml or options")
    for name in given_by(context):
        if name not in ("study", "out", "quiet", "risk_appetite"):
            option = "--" + name.replace("_", "-")
            raise ValueError(f"{option} cannot be combined with a study.toml: set it in [learning]")


def given_by(context: typer.Context) -> list[str]:
    """Return the names of the parameters that a user gave, also if with the default value."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    default = "DEFAULT", "DEFAULT_MAP"
    return [name for name, source in sources.items() if source and source.name not in default]


def as_options(error: str, settings: Iterable[Setting]) -> str:
    """Return an error in which settings, written `name`, are named as options."""
    options = {f"`{setting.name}`": setting.option for setting in settings}
    return re.sub("`[a-z_]+`", lambda name: options.get(name[0], name[0]), error)
