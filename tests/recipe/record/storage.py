"""Cases, what happened to them, and the file that both are kept in."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.recipe.record import adapter

FILE = Path(__file__).with_name("record.json.gz")
NOTHING = "nothing"
"""The source whose leaves stand in for those of a source that is refused as it is."""

Leaves = dict[str, Any]
"""{path: value} of a dump; lists are values."""
Way = Literal["mapping", "file", "complete"]


@dataclass(frozen=True)
class Source:
    """A recipe to begin with. way: given as a mapping (fast), as a file (all of YAML's own mistakes), or as the
    complete one of a model's folder."""

    text: str
    way: Way = "mapping"


@dataclass(frozen=True)
class Case:
    """A source and overrides."""

    source: str
    overrides: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join([self.source, *self.overrides])

    @property
    def number(self) -> int:
        """The same for the same case, evenly spread: what samples are drawn by."""
        return number_of(str(self))

    @property
    def area(self) -> str:
        """Under which of the recipe's keys the case belongs, by its first override."""
        return re.split(r"[.=]", self.overrides[0])[0].strip() if self.overrides else "as they are"


@dataclass(frozen=True)
class Outcome:
    """What happened: accepted (with leaves), refused (with a message), or broken (something other than UserError)."""

    leaves: Leaves = field(default_factory=dict)
    digest: str = ""
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    message: str = ""
    paths: tuple[str, ...] = ()
    """Of the keys that the message names, sorted."""
    error: str = ""

    @property
    def short(self) -> str:
        if self.error:
            return f"broken: {self.error}"
        return f"refused: {', '.join(self.paths)}" if self.message else "accepted"

    @property
    def all_told(self) -> bool:
        """Whether the message names every problem; of many, the last ones are only counted."""
        return re.search(r"^  and [\d,]+ more$", self.message, flags=re.MULTILINE) is None


def number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:6], "big")


def named(message: str) -> list[str]:
    """The paths of keys that a message names, sorted.

    >>> named("recipe: decoder.size: should be greater than 0, got 0")
    ['decoder.size']
    >>> named("recipe: 2 problems\\n  inputs.x: is read and never used; name it\\n  a: unknown key; allowed: b")
    ['a', 'inputs.x']
    >>> named("--set decoder: undoes the --set decoder.size before it"), named("recipe, line 1: not YAML: x")
    (['decoder'], [])
    """
    if message.startswith("--set "):
        return [re.split(r"[=:]", message.removeprefix("--set "))[0].strip()]
    head, *lines = message.split("\n")
    problems = lines if re.fullmatch(r"recipe: [\d,]+ problems", head) else [head.removeprefix("recipe: ")]
    strange = r"(.*?): (?:unknown key|not a name|a key should)"  # with spaces or colons in it
    found = [re.match(rf"([^\s:]+): |{strange}", problem.strip()) for problem in problems]
    return sorted({one[1] or one[2] for one in found if one})


def leaves_of(dump: Mapping[str, Any], path: str = "") -> Leaves:
    """What a dump says, path by path.

    >>> leaves_of({"a": {"b": 1, "c": {}}, "d": [2]})
    {'a.b': 1, 'a.c': {}, 'd': [2]}
    """
    found: Leaves = {}
    for key, value in dump.items():
        if isinstance(value, Mapping) and value and not any("." in str(inner) for inner in value):
            found |= leaves_of(value, f"{path}{key}.")
        else:
            found[f"{path}{key}"] = value
    return found


def dump_of(leaves: Leaves) -> dict[str, Any]:
    """The dump that has these leaves.

    >>> dump_of({"a.b": 1, "a.c": {}})
    {'a': {'b': 1, 'c': {}}}
    """
    dump: dict[str, Any] = {}
    for path, value in leaves.items():
        *groups, key = path.split(".")
        here = dump
        for group in groups:
            here = here.setdefault(group, {})
        here[key] = copy.deepcopy(value)
    return dump


def outcome_of(source: Source, overrides: Sequence[str] = ()) -> Outcome:
    """What happens to it now."""
    try:
        if source.way == "file":
            made = adapter.load_file(source.text, overrides)
        else:
            made = adapter.load(parsed(source.text), overrides, complete=source.way == "complete")
    except adapter.UserError as error:
        return Outcome(message=str(error), paths=tuple(named(str(error))))
    except Exception as error:  # noqa: BLE001 - anything else is a mistake of the product, to be told as one
        return Outcome(error=f"{type(error).__name__}: {error}"[:200])
    dump = json.loads(json.dumps(made.dump))
    digest = hashlib.sha256(json.dumps(dump, sort_keys=True).encode()).hexdigest()[:12]
    return Outcome(leaves_of(dump), digest, tuple(made.left_out), tuple(made.notes))


@cache
def parsed(text: str) -> dict[str, Any]:
    """Read once: pure Python takes longer to read YAML than the product does to check it."""
    parsed: dict[str, Any] = yaml.safe_load(text)
    return parsed


# ---------------------------------------------------------------- the file


@dataclass
class Record:
    """Everything that is in the file. keys: (path, what is allowed, default) of every key when the record was made."""

    keys: list[tuple[str, str, str]]
    sources: dict[str, Source]
    outcomes: dict[Case, Outcome]

    def write(self, path: Path = FILE) -> None:
        leaves: dict[str, int] = {}  # each leaf as JSON, and its number
        plain = {name: self.outcomes.get(Case(name), Outcome()).leaves for name in self.sources}
        cases = []
        for case, outcome in sorted(self.outcomes.items(), key=lambda one: bool(one[0].overrides)):  # plain ones first
            base = (plain[case.source] or plain[NOTHING]) if case.overrides else {}
            cases.append([case.source, list(case.overrides), *_packed(outcome, base, leaves)])
        content = {
            "keys": self.keys,
            "sources": {name: [one.text, one.way] for name, one in self.sources.items()},
            "leaves": [json.loads(leaf) for leaf in leaves],
            "cases": cases,
        }
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))

    @classmethod
    def read(cls, path: Path = FILE) -> Record:
        content = json.loads(gzip.decompress(path.read_bytes()))
        sources = {name: Source(text, way) for name, (text, way) in content["sources"].items()}
        outcomes: dict[Case, Outcome] = {}
        for source, overrides, kind, *packed in sorted(content["cases"], key=lambda one: bool(one[1])):
            case = Case(source, tuple(overrides))
            base: Leaves = {}
            if overrides and kind == "accepted":
                base = outcomes.get(Case(source), Outcome()).leaves or outcomes[Case(NOTHING)].leaves
            outcomes[case] = _unpacked(kind, packed, base, content["leaves"])
        return cls([(path, allowed, default) for path, allowed, default in content["keys"]], sources, outcomes)


def _packed(outcome: Outcome, base: Leaves, leaves: dict[str, int]) -> list[Any]:
    """An outcome as the file has it: of an accepted one, the leaves that differ from the base's and those missing."""
    if outcome.error:
        return ["broken", outcome.error]
    if outcome.message:
        return ["refused", outcome.paths, outcome.message]
    changed = [one for one in outcome.leaves.items() if one[0] not in base or not same(base[one[0]], one[1])]
    numbers = [leaves.setdefault(json.dumps(one), len(leaves)) for one in changed]
    lost = [path for path in base if path not in outcome.leaves]
    return ["accepted", outcome.digest, numbers, lost, outcome.left_out, outcome.notes]


def _unpacked(kind: str, packed: Sequence[Any], base: Leaves, leaves: Sequence[tuple[str, Any]]) -> Outcome:
    if kind == "broken":
        return Outcome(error=packed[0])
    if kind == "refused":
        return Outcome(message=packed[1], paths=tuple(packed[0]))
    digest, numbers, lost, left_out, notes = packed
    kept = {path: value for path, value in base.items() if path not in set(lost)}
    return Outcome(kept | {leaves[one][0]: leaves[one][1] for one in numbers}, digest, tuple(left_out), tuple(notes))


def same(one: Any, other: Any) -> bool:
    """Whether two values of leaves are equal and of one type: 1 is neither true nor 1.0."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def sampled(cases: Iterator[Case] | Sequence[Case], share: float) -> list[Case]:
    """About that share of the cases, always the same ones."""
    return [case for case in cases if case.number % 10_000 < share * 10_000]
