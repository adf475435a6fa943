"""Variables whose missing values are a state, the last one."""

from __future__ import annotations

from vertibayes_protocols.variables import Variable

MISSING_STATE = "missing"


def without_missing(variable: Variable) -> Variable:
    """Return a variable without missing values."""
    return Variable(variable.name, variable.states)


def with_missing_state(variable: Variable) -> Variable:
    """Return a variable whose missing values are its last state."""
    if not variable.missing:
        return variable
    name = MISSING_STATE
    while name in variable.states:
        name += "_"
    return Variable(variable.name, (*variable.states, name))


def has_missing_state(variable: Variable) -> bool:
    """Whether the name of a variable's last state is that of missing values."""
    return variable.states[-1].rstrip("_") == MISSING_STATE
