"""What happens to recipes now that did not when the record was made, in groups:
`python -m tests.recipe.record.differences [--sample 0.1] [--messages] [--show 3] [CASES]`."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from fnmatch import fnmatchcase
from itertools import zip_longest
from textwrap import wrap

from tests.recipe.record.comparing import Difference, compared
from tests.recipe.record.storage import Case, Outcome, Record, outcome_of, sampled

WIDTH = 76
"""Characters of each of two columns."""


def side_by_side(left: str, right: str) -> str:
    """Two texts in two columns."""
    columns = [[piece for line in text.split("\n") for piece in wrap(line, WIDTH) or [""]] for text in (left, right)]
    return "\n".join(f"    {one:{WIDTH}} | {other}".rstrip() for one, other in zip_longest(*columns, fillvalue=""))


def said(outcome: Outcome) -> str:
    """All there is to read of an outcome."""
    lines = [*outcome.left_out, *outcome.notes]
    return outcome.error or outcome.message or "\n".join(["accepted", *lines])


def grouped(differences: list[Difference], show: int) -> str:
    """The differences of one sort together, the largest group first."""
    groups: dict[str, list[Difference]] = defaultdict(list)
    for one in differences:
        groups[one.what].append(one)
    lines = [f"{len(differences):,} cases differ, in {len(groups):,} groups"]
    for what, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        lines += ["", f"== {len(members):,} x {what}"]
        for one in members[:show]:
            lines.append(f"  {one.case}")
            lines += [f"    {detail}" for detail in one.details] if not one.was.message else []
            lines.append(side_by_side(f"was: {said(one.was)}", f"now: {said(one.now)}"))
    return "\n".join(lines)


def reworded(record: Record, cases: list[Case], show: int) -> str:
    """Messages and notes that say the same of the same keys in other words: not compared by tests, but to be read."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        was, now = record.outcomes[case], outcome_of(record.sources[case.source], case.overrides)
        if was.short == now.short and said(was) != said(now):
            groups[_changed(said(was), said(now))].append(case)
    lines = [f"{sum(map(len, groups.values())):,} cases are told in other words, in {len(groups):,} groups"]
    for (left, right), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        lines += ["", f"== {len(members):,} x", side_by_side(f"was: {left}", f"now: {right}")]
        lines += [f"  {case}" for case in members[:show]]
    return "\n".join(lines)


def _changed(left: str, right: str) -> tuple[str, str]:
    """Of two messages the lines that only one of them has."""
    lines = [[line.strip() for line in text.split("\n")] for text in (left, right)]
    one, other = ("\n".join(line for line in mine if line not in theirs) for mine, theirs in (lines, lines[::-1]))
    return one, other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", default="*", help="a pattern with *, for example '* | attention.score=*'")
    parser.add_argument("--sample", type=float, default=1.0, help="share of the cases that is tried")
    parser.add_argument("--show", type=int, default=3, help="cases shown of each group")
    parser.add_argument("--messages", action="store_true", help="also what is told in other words than before")
    given = parser.parse_args()
    record = Record.read()
    chosen = [case for case in sampled(list(record.outcomes), given.sample) if fnmatchcase(str(case), given.cases)]
    sys.stdout.write(f"{grouped(compared(record, chosen), given.show)}\n")
    if given.messages:
        sys.stdout.write(f"\n{reworded(record, chosen, given.show)}\n")


if __name__ == "__main__":
    main()
