"""What can be wrong with a message: bytes, sizes, kinds, fields."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.vectors.forged import at, places, put
from vertibayes_protocols import wire
from vertibayes_protocols.wire.types import is_record

EDGES = (0, 1, 2, 63, 64, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -1)


class BrokenMessages:
    """Draws what is wrong with a message."""

    def __init__(self, seed, bodies):
        self.draw = np.random.default_rng(seed)
        self.bodies = bodies
        self.ways = [self.flip, self.cut, self.insert, self.remove, self.size, self.kind]
        self.ways += [self.splice, self.overwrite]

    def below(self, limit):
        """Draw a number below a limit."""
        return int(self.draw.integers(limit)) if limit > 0 else 0

    def choose(self, things):
        """Draw one of several things."""
        return things[self.below(len(things))]

    def bytes(self, body):
        """Change a body, or a header, once to three times."""
        for _ in range(1 + self.below(3)):
            body = self.choose(self.ways)(body)
        return bytes(body)

    def place(self, body):
        """Draw a place: half of them in the first 128 bytes, where kinds and sizes are."""
        return self.below(min(len(body), 128) if self.below(2) else len(body))

    def flip(self, body):
        """Flip up to eight bits."""
        body = bytearray(body)
        for _ in range(1 + self.below(8)):
            if body:
                body[self.place(body)] ^= 1 << self.below(8)
        return body

    def cut(self, body):
        """Cut a body short."""
        return body[: self.place(body)]

    def insert(self, body):
        """Insert random bytes."""
        at = self.place(body)
        return body[:at] + self.draw.bytes(1 + self.below(70)) + body[at:]

    def remove(self, body):
        """Take bytes out."""
        at = self.place(body)
        return body[:at] + body[at + 1 + self.below(70) :]

    def overwrite(self, body):
        """Write random bytes over others."""
        at, new = self.place(body), self.draw.bytes(1 + self.below(16))
        return body[:at] + new + body[at + len(new) :]

    def size(self, body):
        """Write an edge of the integers over four or eight bytes: often over a size."""
        width, edge = self.choose((4, 8)), self.choose(EDGES)
        new = (edge % 2 ** (8 * width)).to_bytes(width, "little")
        at = self.place(body)
        return body[:at] + new + body[at + width :]

    def kind(self, body):
        """Give a body another message's kind."""
        if not body:
            return body
        other = self.choose(self.bodies)
        return other[: 1 + other[0]] + body[1 + body[0] :]

    def splice(self, body):
        """Put the end of another message behind the beginning of this one."""
        other = self.choose(self.bodies)
        return body[: self.place(body)] + other[self.place(other) :]

    def message(self, message):
        """Change values in a readable message, once or twice, at any depth."""
        for _ in range(1 + self.below(2)):
            paths = list(places(message))
            if not paths:
                return message
            path = self.choose(paths)
            new = self.value(at(message, path))
            if self.below(6) == 0:  # exchanged values
                other = self.choose(paths)
                new = at(message, other)
                if path[: len(other)] != other != path and other[: len(path)] != path:
                    message = put(message, other, at(message, path))
            message = put(message, path, new)
        return message

    def value(self, value):
        """Change a value; its type stays, unless it is None or a record."""
        if value is None or isinstance(value, float):
            return self.choose((None, 0, 0.0, -0.0, 1, 1e-300, 1e308, np.inf, np.nan, -1.5, "x"))
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            near = value + self.choose((-16, -1, 1, 16))
            return max(-(2**63), min(self.choose((near, *EDGES)), 2**63 - 1))
        if isinstance(value, str):
            return self.choose(("", value + "x", value * 50, "é\0", "a", "b", "dealer", "x", "w"))
        if isinstance(value, bytes):
            return self.bytes(value)[:4096]
        if is_record(type(value)):
            return self.choose((None, (value,), self.message(value), self.message(value)))
        if isinstance(value, Mapping):
            items = self.items(tuple(value.items()))
            return dict(item for item in items if isinstance(item, tuple) and len(item) == 2)
        if isinstance(value, tuple):
            return self.items(value)
        return self.array(value)

    def long(self, value, count=10_000):
        """Return a value of the same type with so many items or characters, if it has any."""
        if isinstance(value, Mapping) and value:
            return dict.fromkeys(map(str, range(count)), next(iter(value.values())))
        many = type(value) in (tuple, str, bytes) and len(value)
        return value * (count // len(value)) if many else value

    def items(self, value):
        """Change a tuple: an item, the order, the length."""
        at = self.below(len(value))
        changed = (*value[:at], self.value(value[at]), *value[at + 1 :]) if value else ()
        swapped = (*value[at:], *value[:at])
        return self.choose((changed, changed, changed, value[:at], value * 2, swapped, value * 40))

    def array(self, value):
        """Change an array: type, elements, shape, length."""
        other = value.astype(self.choose(wire.DTYPES))
        noise = self.draw.integers(0, 2**16, value.shape).astype(value.dtype)
        longer = np.resize(value, self.choose((3 * value.size, 400_000)))
        near = value + value.dtype.type(1)
        return self.choose(
            (other, noise, longer, near, value.ravel()[1:], value.reshape(1, -1), value[:0])
        )
