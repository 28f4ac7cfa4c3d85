"""Columns: which column of a table is which input of a recipe, and the values by the recipe's names."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2see.data.formats import Row
from seq2see.data.sources import RowError
from seq2see.data.tables import Table
from seq2see.errors import CellError, SettingError, UserError, listing, nearest
from seq2see.files import shortened

OUTPUT = "output"
ALIGNMENT = "output.alignment"
"""The name of a row's links between input and output; no input can have it."""
Check = Callable[[str], str | None]
Joined = Callable[[Sequence[Any]], str]
"""Joins a list to one text, which its field can split again; raises a UserError if that is impossible."""

FILE, NUMBERS = "a file", "numbers"
"""Kinds of unusable values, which are reported together."""

MAX_PATH = 200
"""Characters of a path in a message."""
_ITEM = re.compile(r"(.+)\[(-?\d+)\]")
_NUMBERED = re.compile(r"(.*?)\d+")
"""A column among several that are numbered: t0, t1, .."""


class NumbersError(RowError):
    """A list that contains something other than numbers."""


@dataclass(frozen=True)
class Resolution:
    """The columns of a recipe in a table.

    mapping: {name in the recipe: column of the table, or what names several}; note: what was guessed, for the user;
    lists: names whose values may be lists, with the function that joins them; several: the same for names whose values
    may lie in several columns; files: names whose values are paths, with a function that returns why a file cannot be
    used, or None; numbers: the same for rows of numbers; known: values that every row has without a column.
    """

    mapping: dict[str, str]
    note: str | None = None
    lists: Mapping[str, Joined] = field(default_factory=dict)
    several: Mapping[str, Joined] = field(default_factory=dict)
    files: Mapping[str, Check] = field(default_factory=dict)
    numbers: Mapping[str, Check] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    def rows(self, table: Table, *, filled: Collection[str] = ()) -> Iterator[Values]:
        """The rows of a table by the recipe's names.

        A value that is not text makes a bad row. A row with an empty value in one of the `filled` names is skipped and
        counted.
        """
        used = 0
        for values in self.part(table, table, filled=filled):
            used += 1
            yield values
        self.check(table, used)

    def check(self, table: Table, used: int) -> None:
        """Raise the errors of all rows of a table that was read; used: the rows that are left."""
        table.check_unusable()
        if not used:
            raise UserError("; ".join([f"{table.path}: no row is left to use", *table.notes]))

    def part(self, table: Table, rows: Iterable[Row], *, filled: Collection[str] = ()) -> Iterator[Values]:
        """The same for some rows of a table; `check` is called after the last."""
        several = self._several(table)
        for row in rows:
            try:
                values = {name: self._value(table, row, name, several.get(name)) for name in self.mapping}
            except NumbersError as error:
                table.mark_unusable(NUMBERS, str(error))
                continue
            except RowError as error:
                table.bad(error)
                continue
            blank = next((name for name in filled if name in values and not values[name].strip()), None)
            if blank is not None:
                table.skip_blank(self.mapping[blank], row.line)
                continue
            written = {name: values[name] for name in self.files if name in values}
            if not self._valid_numbers(table, row, values) or not self._resolve_files(table, row, values):
                continue
            yield Values({**values, **self.known}, table, row.line, written=written)

    def _valid_numbers(self, table: Table, row: Row, values: Mapping[str, str]) -> bool:
        """Whether the rows of numbers are valid; problems are reported after the last row."""
        for name, check in self.numbers.items():
            reason = _reason(table, row, name, check, values[name]) if values.get(name, "").strip() else None
            if reason is not None:
                table.mark_unusable(NUMBERS, f"{table.place(row.line)}, column '{self.mapping[name]}': {reason}")
                return False
        return True

    def _resolve_files(self, table: Table, row: Row, values: dict[str, str]) -> bool:
        """Make paths absolute, relative to the table, and check the files; problems are reported after the last row."""
        bad: dict[str, str] = {}  # by column: an input and the output may share one
        for name, check in self.files.items():
            if not values.get(name, "").strip():
                continue
            path, column = values[name], self.mapping[name]
            values[name] = str(table.folder / path)
            reason = _reason(table, row, name, check, values[name]) if column not in bad else None
            if reason is not None:
                bad[column] = f"column '{column}': {shortened(path, MAX_PATH, quotes=False)}: {reason}"
        if bad:
            table.mark_unusable(FILE, f"{table.place(row.line)}, {'; '.join(bad.values())}")
        return not bad

    def _several(self, table: Table) -> dict[str, list[str]]:
        """The names whose values lie in several columns, with these columns: not those that others have alone."""
        several = {name: column for name, column in self.mapping.items() if not has_one(column, table.columns)}
        free = [column for column in table.columns if column not in self.mapping.values()]
        found = {name: columns for name, column in several.items() if (columns := members(column, free))}
        for column in several.values():
            self._check_free(table, column)
        for name, columns in found.items():
            if name not in self.several:
                given = f"'{self.mapping[name]}' names {len(columns)} columns ({quoted(columns)})"
                raise UserError(f"{table.path}: {given}, and the values of '{name}' lie in one")
        return found

    def _check_free(self, table: Table, column: str) -> None:
        """Refuse `x, label` where `label` alone is another's."""
        for part in map(str.strip, column.split(",")) if members(column, table.columns) else ():
            owner = next((name for name, other in self.mapping.items() if other == part), None)
            if owner is not None and part in table.columns:
                whose = "the output's" if owner == OUTPUT else f"that of '{owner}'"
                raise UserError(f"{table.path}: '{column}': column '{part}' is {whose}")

    def _value(self, table: Table, row: Row, name: str, several: Sequence[str] | None) -> str:
        column = self.mapping[name]
        value, join = row.values.get(column), self.lists.get(name)
        points = table.points if name in self.numbers else lambda cell: cell
        value = points(value)
        if several is not None:
            value, join = [points(row.values.get(one)) for one in several], self.several[name]
        if join is not None and isinstance(value, list):
            try:
                return join(value)
            except UserError as error:
                kind = NumbersError if name in self.numbers else RowError
                if several is not None and isinstance(error, CellError):
                    column = several[error.place]
                raise kind(f"{table.place(row.line)}, column '{column}': {error}") from None
        return value if isinstance(value, str) else _text(table, row, column=column)


class Values(dict[str, str]):
    """One row by the recipe's names, with its position: 'pairs.tsv, line 12'.

    written: file paths as the table has them; the values themselves are absolute.
    """

    __slots__ = ("line", "table", "written")

    def __init__(self, values: Mapping[str, str], table: Table, line: int, *, written: Mapping[str, str]):
        super().__init__(values)
        self.table = table
        self.line = line
        self.written = written

    @property
    def where(self) -> str:
        return self.table.place(self.line)


def as_written(row: Mapping[str, str], name: str) -> str:
    """A value as the table has it, independent of where the table and its files lie."""
    return row.written.get(name, row[name]) if isinstance(row, Values) else row[name]


def place_of(row: Mapping[str, str], number: int) -> str:
    """The position of a row in its file, or its number."""
    return getattr(row, "where", f"row {number}")


def join_texts(items: Sequence[Any], by: Joined) -> str:
    """A list of texts as one text."""
    texts = [_as_text(item) for item in items]
    for item, text in zip(items, texts, strict=True):
        if text is None:
            raise UserError(f"expected a list of texts, found {_type_name(item)} in it")
    return by([text for text in texts if text is not None])


def _reason(table: Table, row: Row, name: str, check: Check, value: str) -> str | None:
    """What a check says. Where a setting is at fault, all rows are bad for one reason, which is told once."""
    try:
        return check(value)
    except SettingError as error:
        if table.settings.on_error != "stop":
            return str(error)
        path = OUTPUT if name == OUTPUT else f"inputs.{name}"
        raise UserError(f"{table.place(row.line)}: {path}.{error}") from None


def _text(table: Table, row: Row, *, column: str) -> str:
    value: Any = row.values[column] if column in row.values else _item(table, row, column=column)
    text = _as_text(value)
    if text is None:
        raise RowError(f"{table.place(row.line)}, column '{column}': expected text, found {_type_name(value)}")
    return text


def _as_text(value: Any) -> str | None:
    """Text and numbers as text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def _type_name(value: Any) -> str:
    names = {str: "text", list: "a list", dict: "an object", type(None): "nothing (null)"}
    return names.get(type(value), f"a {type(value).__name__}")


def _item(table: Table, row: Row, *, column: str) -> Any:
    """'history[-1]': one item of a column of lists, counted from 0, or from the end if negative."""
    item = _ITEM.fullmatch(column)
    if item is None:
        return None
    base, position = item[1], int(item[2])
    value = row.values.get(base)
    place = f"{table.place(row.line)}, column '{base}'"
    if not isinstance(value, list):
        raise RowError(f"{place}: expected a list for item [{position}], found {_type_name(value)}")
    if not -len(value) <= position < len(value):
        raise RowError(f"{place}: no item [{position}] in a list of {len(value)}")
    return value[position]


def _base(column: str) -> str:
    """The column that an item belongs to."""
    item = _ITEM.fullmatch(column)
    return item[1] if item else column


def has_one(column: str, table_columns: Sequence[str]) -> bool:
    """Whether a table has a single column of that name, or the lists that `history[-1]` is an item of."""
    return column in table_columns or _base(column) in table_columns


def has_column(column: str, table_columns: Sequence[str]) -> bool:
    """Whether a table has a column, or all columns that a name stands for."""
    return has_one(column, table_columns) or bool(members(column, table_columns))


def members(column: str, table_columns: Sequence[str]) -> list[str]:
    """The columns that one name stands for: `t*` for all that begin so, in the table's order, `x, y, z` for these
    three; none where the table lacks one of them.

    >>> members("t*", ["label", "t1", "t2"]), members("x, t*", ["t1", "t2", "x"]), members("x, z", ["x", "y"])
    (['t1', 't2'], ['x', 't1', 't2'], [])
    """
    if not any(mark in column for mark in "*,"):
        return []
    found: list[str] = []
    for part in map(str.strip, column.split(",")):
        these = [part] if part in table_columns else []
        if "*" in part and not these:
            first, _, last = part.partition("*")
            least = len(part) - 1
            these = [one for one in table_columns if one.startswith(first) and one.endswith(last) and len(one) >= least]
        if not these:
            return []
        found += [one for one in these if one not in found]
    return found


def missing_members(column: str, table_columns: Sequence[str]) -> list[str]:
    """The columns of `x, y, z` that a table lacks; the whole name where it lacks them all, as a name may have commas.

    >>> missing_members("x, z", ["x", "y"]), missing_members("age, village", ["x", "y"])
    (['z'], ['age, village'])
    """
    parts = [part.strip() for part in column.split(",")]
    missing = [part for part in parts if part not in table_columns and not members(part, table_columns)]
    return missing if len(missing) < len(parts) else [column]


def resolve(
    table_columns: Sequence[str],
    wanted: Sequence[tuple[str, str]],
    columns: Sequence[str] | None = None,
    *,
    path: str | Path,
    optional: Collection[str] = (),
    several: Collection[str] = (),
) -> Resolution:
    """Find the recipe's columns in a table.

    wanted: (name in the recipe, column named by the recipe), inputs first, the output last;
    columns: those of the table in the order of `wanted` (--columns);
    optional: names that may be absent (outputs, at prediction);
    several: names whose values may lie in several columns, for the advice of messages.

    The user's columns come first; then the recipe's names if the header has them; then, with a note, the table's
    columns in order if their number fits exactly (refused if the name of an input would turn that order round).
    A column `history[-1]` is the last item of the lists in column `history`. Names with the same column (an
    autoencoder's input and output) count as one.
    """
    if isinstance(columns, str):
        raise UserError(f"columns: expected a list of names, got '{columns}'")
    leaders: dict[str, str] = {}
    for name, column in wanted:
        leaders.setdefault(column, name)
    if len(leaders) < len(wanted) and (columns is None or len(columns) < len(wanted)):
        alone = [(name, column) for column, name in leaders.items()]
        others = set(optional) & set(leaders.values())
        resolution = resolve(table_columns, alone, columns, path=path, optional=others, several=several)
        shared = {name: leaders[column] for name, column in wanted}
        mapping = {name: resolution.mapping[leader] for name, leader in shared.items() if leader in resolution.mapping}
        return Resolution(mapping, resolution.note)
    names = [name for name, _ in wanted]
    needed = [name for name in names if name not in optional]
    if columns is not None:
        advice = _numbered_example(table_columns, wanted, several)
        return _from_option(table_columns, names, columns, path=path, least=len(needed), advice=advice)
    named = {name: column for name, column in wanted if has_column(column, table_columns)}
    if all(name in named for name in needed):
        return Resolution(named)
    for chosen in (names, needed):
        if len(table_columns) == len(chosen) and set(named) <= set(chosen):
            taken = {other for column in named.values() for other in (column, _base(column))}
            left = iter([column for column in table_columns if column not in taken])
            mapping = {name: named.get(name) or next(left) for name in chosen}
            turned = [_base(column) for column in mapping.values()] != [_base(column) for column in table_columns]
            if named and OUTPUT not in named and turned:
                raise UserError(_turned_round(table_columns, mapping, next(iter(named.values())), path=path))
            return Resolution(mapping, None if ".txt" in Path(path).suffixes else _note(mapping))
    raise UserError(_not_found(table_columns, wanted, needed, several, path=path))


def _from_option(
    table_columns: Sequence[str],
    names: list[str],
    columns: Sequence[str],
    *,
    path: str | Path,
    least: int,
    advice: list[str] | None,
) -> Resolution:
    columns = _rejoined(columns, table_columns)
    if not least <= len(columns) <= len(names):
        number = str(least) if least == len(names) else f"{least} to {len(names)}"
        hint = f", for example --columns {as_option(advice)}" if advice and len(columns) > len(names) else ""
        raise UserError(
            f"--columns {as_option(columns)}: {len(columns)} columns given, {number} expected,"
            f" in this order: {', '.join(names)}{hint or _comma_hint(table_columns[: len(names)], table_columns)}"
        )
    for column in columns:
        if not has_column(column, table_columns):
            missing = missing_members(column, table_columns)
            raise UserError(
                f"{path}: no column {', '.join(map(repr, missing))}{nearest(missing[0], table_columns)};"
                f" the table has: {quoted(table_columns)}{_comma_hint(table_columns[: len(columns)], table_columns)}"
            )
    return Resolution(dict(zip(names, columns, strict=False)))


def _rejoined(parts: Sequence[str], table_columns: Sequence[str]) -> Sequence[str]:
    """Names as they were meant where one with commas was given without quotes, which split it.

    >>> _rejoined(["age", "village", "spelt"], ["age, village", "spelt"])
    ['age, village', 'spelt']
    """
    if all(has_column(part, table_columns) for part in parts):
        return parts
    with_commas = {"".join(name.split()): name for name in table_columns if "," in name}
    names: list[str] = []
    start = 0
    while start < len(parts):
        ends = range(len(parts), start + 1, -1)
        keys = {"".join(",".join(parts[start:end]).split()): end for end in ends}
        found = next((key for key in keys if key in with_commas), None)
        names.append(parts[start] if found is None else with_commas[found])
        start = start + 1 if found is None else keys[found]
    return names


def quoted(names: Sequence[str], *, between: str = ", ") -> str:
    """The first names, quoted if they contain commas, quotes or outer spaces.

    >>> quoted(["a, b", "c"])
    '"a, b", c'
    """

    def quote(name: str) -> str:
        plain = name == name.strip() and not any(mark in name for mark in ',"\r\n')
        return name if plain else '"' + name.replace('"', '""') + '"'

    return listing(map(quote, names), between=between)


def as_option(names: Sequence[str]) -> str:
    """Names as a value of --columns, quoted for the shell.

    >>> print(as_option(["heard", "spelt"]), as_option(["age, village", "spelt"]))
    heard,spelt '"age, village",spelt'
    """
    return shlex.quote(quoted(names, between=","))


def _comma_hint(example: Sequence[str], table_columns: Sequence[str]) -> str:
    """How to write names with commas, if there are any; example: as many names as are expected."""
    if not any("," in name for name in table_columns):
        return ""
    return f"; quote names that contain commas, for example --columns {as_option(example)}"


def _note(mapping: dict[str, str]) -> str:
    *inputs, last = (f"'{column}'" for column in mapping.values())
    count = {1: "the only one", 2: "the only two", 3: "the only three"}.get(len(mapping), f"the only {len(mapping)}")
    if OUTPUT not in mapping:
        return f"columns: {', '.join([*inputs, last])} ({count})"
    return f"columns: {', '.join(inputs)} -> {last} ({count})" if inputs else f"columns: {last} ({count})"


def _not_found(
    table_columns: Sequence[str],
    wanted: Sequence[tuple[str, str]],
    needed: list[str],
    several: Collection[str],
    *,
    path: str | Path,
) -> str:
    """The message for a table without the recipe's columns.

    Of more columns than are wanted nobody knows which are meant: the example has the recipe's names in capitals.
    """
    unknown = [column for name, column in wanted if name in needed and not has_column(column, table_columns)]
    missing = [part for column in unknown for part in missing_members(column, table_columns)]
    hints = "".join(nearest(column, table_columns) for column in missing[:1])
    shown = [column if has_column(column, table_columns) else column.upper() for _, column in wanted]
    if len(table_columns) == len(wanted):
        shown = list(table_columns)
    example = as_option(shown)
    if numbered := _numbered_example(table_columns, wanted, several):
        example = as_option(numbered)
    return (
        f"{path}: no column {', '.join(map(repr, missing))}{hints}; the recipe wants: "
        f"{quoted([column for _, column in wanted])}; the table has: {quoted(table_columns)};"
        f" give --columns in the recipe's order, for example --columns {example}"
    )


def _turned_round(table_columns: Sequence[str], mapping: Mapping[str, str], column: str, *, path: str | Path) -> str:
    """The message where the name of an input would turn the order of the columns round: either may be meant."""
    return (
        f"{path}: column '{column}' has the name of the recipe's input, but is not in its place; give --columns "
        f"{as_option(list(mapping.values()))} if that is meant, or --columns {as_option(table_columns)} for the order "
        "of the table"
    )


def _numbered_example(
    table_columns: Sequence[str], wanted: Sequence[tuple[str, str]], several: Collection[str]
) -> list[str] | None:
    """Columns for each wanted name where one of them may lie in several and the table numbers its columns (t0, t1, ..);
    None elsewhere."""
    stems = Counter(found[1] for column in table_columns if (found := _NUMBERED.fullmatch(column)))
    stem, count = stems.most_common(1)[0] if stems else ("", 0)
    spread = [name for name, column in wanted if name in several and not has_column(column, table_columns)]
    if count < 2 or len(spread) != 1:
        return None
    named = {name: column for name, column in wanted if has_column(column, table_columns)}
    numbered = [column for column in table_columns if (found := _NUMBERED.fullmatch(column)) and found[1] == stem]
    left = [column for column in table_columns if column not in numbered and column not in named.values()]
    others = [name for name, _ in wanted if name not in named and name not in spread]
    if len(left) < len(others):
        return None
    named |= {spread[0]: f"{stem}*", **dict(zip(others, left, strict=False))}
    free = [column for column in table_columns if column not in named.values()]
    return [named[name] for name, _ in wanted] if members(f"{stem}*", free) == numbered else None


@dataclass
class Question:
    """One distinct input with all outputs given for it, and the numbers of their rows."""

    inputs: dict[str, str]
    references: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


def group_references(rows: Iterable[Mapping[str, str]]) -> list[Question]:
    """Distinct inputs in order of first occurrence, each with its references: rows with equal inputs are references
    of each other.

    Without inputs (language models) every row stands alone.

    >>> group_references([{"word": "a", "output": "AH"}, {"word": "a", "output": "EY"}])[0].references
    ['AH', 'EY']
    """
    questions: dict[tuple[str, ...], Question] = {}
    for number, row in enumerate(rows):
        inputs = {name: value for name, value in row.items() if name not in (OUTPUT, ALIGNMENT)}
        key = tuple(inputs.values()) if inputs else (str(number),)
        question = questions.setdefault(key, Question(inputs))
        question.rows.append(number)
        if OUTPUT in row:
            question.references.append(row[OUTPUT])
    return list(questions.values())
