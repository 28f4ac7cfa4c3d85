"""The part of YAML that recipes are written in: no tags, no repeated keys, and nothing that grows when it is read.

Anchors and aliases (`&small`, `*small`, `<<: *small`) are allowed while what they expand to stays small: nested
aliases double with every line, so that a few hundred bytes could stand for gigabytes.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import ConstructorError

from seq2see.errors import UserError
from seq2see.files import SURROGATES, shortened

MOST_BYTES = 1 << 18
"""Of a recipe's text. The longest recipes that ship have a few thousand; weights of 10,000 classes fit."""
MOST_NODES = 50_000
"""Keys and values together, aliases counted as what they stand for."""
MOST_DEPTH = 32
"""Levels of mappings and lists inside each other. The schema has six."""
MOST_CHARACTERS = 10_000
"""Of a single key or value."""
LARGEST = 1 << 63
"""Whole numbers lie between this and its negative."""

_PREFIX = "tag:yaml.org,2002:"
_TAGS = frozenset(_PREFIX + name for name in ("str", "int", "float", "bool", "null", "seq", "map", "merge"))
_WORDS = frozenset(_PREFIX + name for name in ("timestamp", "value"))
"""What YAML takes for a date, or for a sign of its own (`=`), and recipes take for text."""


def parse(text: str, *, origin: str) -> Any:
    """The value of a YAML text; UserError with origin, line and column where it cannot be read."""
    if len(text) > MOST_BYTES:
        raise UserError(f"{origin}: {len(text):,} characters, and a recipe has at most {MOST_BYTES:,}")
    try:
        return _Loader(text).get_single_data()
    except _Refused as error:
        raise UserError(f"{origin}{_place(error)}: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{origin}, line {line}: not YAML: {str(error).partition(chr(10))[0]}") from None
    except yaml.MarkedYAMLError as error:
        problem = error.problem or "it cannot be read"
        context = f"{error.context}, " if error.context and problem.startswith("but ") else ""
        raise UserError(f"{origin}{_place(error)}: not YAML: {context}{problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:  # "\\UFFFFFFFF" is no character
        raise UserError(f"{origin}: not YAML: {error}") from None


class _Refused(ConstructorError):
    """YAML that recipes do not use."""


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the limits above, which hold while nodes are composed: before any value is made of them."""

    def __init__(self, text: str):
        super().__init__(text)
        self._nodes = 0
        self._depth = 0
        self._measured: dict[int, tuple[int, int]] = {}  # by id of a node: nodes in it, levels in it

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._measured:
                raise _refused(f"*{event.anchor} stands inside what it stands for", event.start_mark)
            nodes, levels = self._measured[id(node)]
            self._count(nodes, levels, event.start_mark)
            return node
        before, self._depth = self._nodes, self._depth + 1
        self._count(1, 0, event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        _check_scalar(node)
        _check_keys(node)
        inside = [self._measured[id(one)][1] for one in _children(node)]
        self._measured[id(node)] = self._nodes - before, 1 + max(inside, default=0)
        return node

    def _count(self, nodes: int, levels: int, mark: Any) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise _refused(f"more than {MOST_NODES:,} keys and values, aliases (*name) counted as what they are", mark)
        if self._depth + levels > MOST_DEPTH:
            raise _refused(f"nested more than {MOST_DEPTH} levels deep", mark)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        return _PREFIX + "str" if tag in _WORDS else tag

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if node.tag not in _TAGS:
            written = node.tag.replace(_PREFIX, "!!")
            raise _refused(f"the tag {shortened(written)} is not used in recipes", node.start_mark)
        try:
            value = super().construct_object(node, deep)
        except (ValueError, KeyError, IndexError, OverflowError):
            kind = node.tag.removeprefix(_PREFIX)
            raise _refused(f"{shortened(node.value)} is not a value of type {kind}", node.start_mark) from None
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            raise _refused(f"{shortened(node.value)} is too large: whole numbers go up to 2**63", node.start_mark)
        return value


def _check_keys(node: Any) -> None:
    """A key given twice would be accepted and do nothing, once: refused. Checked before merges (`<<`) bring in keys
    that a mapping's own replace."""
    seen = set()
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    for key in (key for key, _ in pairs if isinstance(key, yaml.ScalarNode)):
        if key.value in seen:
            raise _refused(f"key {shortened(key.value)} is given twice", key.start_mark)
        seen.add(key.value)


def _check_scalar(node: Any) -> None:
    if not isinstance(node, yaml.ScalarNode):
        return
    if len(node.value) > MOST_CHARACTERS:
        raise _refused(f"a value of {len(node.value):,} characters, at most {MOST_CHARACTERS:,}", node.start_mark)
    if SURROGATES.search(node.value):
        raise _refused(f"{shortened(node.value)} holds half of a surrogate pair, which is not text", node.start_mark)


def _children(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _refused(problem: str, mark: Any) -> _Refused:
    return _Refused(None, None, problem, mark)
