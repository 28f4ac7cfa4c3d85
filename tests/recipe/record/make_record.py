"""Write down what happens to every case today: `python -m tests.recipe.record.make_record [--keys docs/recipe.md]`.

Keys and the texts of the shipped recipes are those of the record that is there; `--keys` takes them anew, from the page
of all keys and from the package.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

from tests.recipe.record.cases import SMALL, Key, cases, complete
from tests.recipe.record.storage import FILE, Case, Outcome, Record, Source, dump_of, outcome_of

DULL = 4
"""Of the cases in which a key is unknown, one in so many is kept."""
RECIPES = Path(__file__).resolve().parents[3] / "seq2see" / "recipes"


def keys_in(page: str) -> list[Key]:
    """Every key of the page of all keys.

    >>> keys_in("| `a.b` | x or y | `x` | what it is |")
    [('a.b', 'x or y', '`x`')]
    """
    return re.findall(
        r"^\| `([^`]+)` \| (.*?) \| (not given|has to be given|its defaults|`.*?`) \| ", page, re.MULTILINE
    )


def made(keys: list[Key], shipped: dict[str, str]) -> Record:
    sources, todo = cases(keys, shipped)
    record = Record(keys, sources, {})
    for case in todo:
        outcome = outcome_of(sources[case.source], case.overrides)
        if not _dull(outcome) or case.number % DULL == 0 or case.source.startswith("file"):
            record.outcomes[case] = outcome
    for name in (*SMALL, *shipped):  # as a model's folder has them
        kept = f"{name}, complete"
        sources[kept], overrides = complete(name, dump_of(record.outcomes[Case(name)].leaves))
        for one in overrides:
            record.outcomes[Case(kept, one)] = outcome_of(sources[kept], one)
        sources[f"{kept}, cut short"] = Source(_cut_short(sources[kept].text), "complete")
        record.outcomes[Case(f"{kept}, cut short")] = outcome_of(sources[f"{kept}, cut short"])
    return record


def _dull(outcome: Outcome) -> bool:
    """Whether a key was unknown and nothing else found: so many overrides are for another kind of encoder or input."""
    return len(outcome.paths) == 1 and ": unknown key" in outcome.message


def _cut_short(text: str) -> str:
    return text.partition("training:\n")[0]


def counted(outcomes: dict[Case, Outcome]) -> str:
    kinds = Counter(one.short.partition(":")[0] for one in outcomes.values())
    return f"{len(outcomes):,} cases: {', '.join(f'{number:,} {kind}' for kind, number in sorted(kinds.items()))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=Path, help="take keys from this page, and recipes from the package")
    given = parser.parse_args()
    if given.keys is not None:
        keys = keys_in(given.keys.read_text(encoding="utf-8"))
        shipped = {path.stem: path.read_text(encoding="utf-8") for path in sorted(RECIPES.glob("*.yaml"))}
    else:
        before = Record.read()
        keys = before.keys
        names = {path.stem for path in RECIPES.glob("*.yaml")}
        shipped = {name: source.text for name, source in before.sources.items() if name in names}
    begun = time.perf_counter()
    record = made(keys, shipped)
    record.write()
    if Record.read() != record:
        raise SystemExit("what was written is not what is read")
    size = FILE.stat().st_size
    sys.stdout.write(f"{counted(record.outcomes)}; {time.perf_counter() - begun:.0f} s, {size:,} bytes\n")
    for case, outcome in record.outcomes.items():
        if outcome.error:
            sys.stdout.write(f"{case}: {outcome.error}\n")


if __name__ == "__main__":
    main()
