"""What may differ from the record, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Change:
    """Cases in which something else is meant to happen now. All three are patterns with `*` and `?`.

    cases: of a case as `Case` writes it, `translation | attention.score=dot | decoder.size=8`; was, now: of what
    happens to it, `accepted` or `refused: decoder.size, encoder.size` (the paths that the message names, sorted).
    A `[` in a pattern is written `[[]`.
    """

    cases: str
    was: str
    now: str
    reason: str

    def covers(self, case: str, was: str, now: str) -> bool:
        return fnmatchcase(case, self.cases) and fnmatchcase(was, self.was) and fnmatchcase(now, self.now)


EXCEPTIONS: list[Change] = [
    Change("* | inputs.*.encoder=[[]*", "refused: ", "refused: inputs.*.encoder", "the message was '0 problems'"),
    Change("*", "refused: *dict[[]str,*", "refused: loss.class_weights*", "the path was one of pydantic's own"),
]
"""A case that one of these covers is not compared. Those above are for messages that were at fault already."""

GONE: set[str] = set()
"""Paths, or beginnings of paths up to a dot, that accepted recipes no longer have where they had them:
`attention.gumbel_temperature`, or `decoder.reconstruction` for all below it. NAME stands for the name of an input."""

ADDED: set[str] = set()
"""Paths, written in the same way, that accepted recipes have where they had none."""


def listed(path: str, table: set[str]) -> bool:
    """Whether a path, or a group it lies in, is in such a table.

    >>> listed("inputs.source.encoder.size", {"inputs.NAME.encoder"}), listed("decoder.sizes", {"decoder.size"})
    (True, False)
    """
    parts = path.split(".")
    if parts[0] == "inputs" and len(parts) > 1:
        parts[1] = "NAME"
    return any(".".join(parts[:end]) in table for end in range(1, len(parts) + 1))
