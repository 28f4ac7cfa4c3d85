"""`KEY=A,B`: one recipe in several variants, every value of every key with every value of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from seq2see.errors import UserError

OPENING, CLOSING, QUOTES = "[{", "]}", "\"'"


@dataclass(frozen=True)
class Variant:
    """What sets a variant apart: (key, value as it was written) for each key that varies, in the order given."""

    changes: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.changes]

    @property
    def overrides(self) -> list[str]:
        return [f"{key}={value}" for key, value in self.changes]

    def __str__(self) -> str:
        """As short as it is clear.

        >>> str(Variant((("attention.score", "dot"),)))
        'dot'
        >>> str(Variant((("attention.score", "dot"), ("encoder.size", "8"))))
        'score dot, size 8'
        """
        if len(self.changes) == 1:
            return self.changes[0][1]
        last = [key.rpartition(".")[2] for key, _ in self.changes]
        names = last if len(set(last)) == len(last) else [key for key, _ in self.changes]
        return ", ".join(f"{name} {value}" for name, (_, value) in zip(names, self.changes, strict=True))


def variants(vary: Sequence[str]) -> list[Variant]:
    """The product of all that varies, the last key fastest.

    >>> [str(one) for one in variants(["attention.score=dot,none", "decoder.size=8,9"])]
    ['score dot, size 8', 'score dot, size 9', 'score none, size 8', 'score none, size 9']
    """
    axes: dict[str, list[str]] = {}
    for given in vary:
        key, values = _axis(given)
        clash = next(
            (other for other in axes if f"{key}.".startswith(f"{other}.") or other.startswith(f"{key}.")), None
        )
        if clash is not None:
            raise UserError(f"--vary {given}: {clash} varies already, and one would undo the other")
        axes[key] = values
    if not axes:
        raise UserError("nothing varies: give --vary KEY=A,B, for example --vary attention.score=dot,additive,none")
    return [Variant(tuple(zip(axes, values, strict=True))) for values in product(*axes.values())]


def _axis(given: str) -> tuple[str, list[str]]:
    key, equals, text = given.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--vary {given}: not KEY=A,B, for example attention.score=dot,additive,none")
    values = separated(text)
    if not all(values):
        raise UserError(f"--vary {given}: a value is missing beside a comma")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise UserError(f"--vary {given}: '{twice}' is given twice")
    return key.strip(), values


def separated(text: str) -> list[str]:
    """Values between commas; a comma inside brackets or quotes belongs to its value.

    >>> separated("8, [a, b],{x: 1, y: 2}")
    ['8', '[a, b]', '{x: 1, y: 2}']
    """
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]
