"""Tables read in blocks give what reading them row by row gives, and are kept for the next run."""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from seq2see.data import blocks, sources, tables
from seq2see.errors import UserError
from seq2see.pipeline import table_cache
from seq2see.pipeline.dataset import Dataset
from seq2see.recipe import load_recipe
from seq2see.training import dataset
from seq2see.training.dataset import Corpus, read_corpus

WORDS: dict[str, Any] = {"inputs": {"source": {}}, "output": {"column": "target"}}
LOWER: dict[str, Any] = {
    "inputs": {
        "source": {
            "case": "lower",
            "unicode": "NFKC",
            "punctuation": "drop",
            "max_length": 2,
            "vocabulary": 20,
            "min_count": 2,
        }
    },
    "output": {"column": "target", "max_length": 3, "share": "source"},
}
CHARACTERS: dict[str, Any] = {
    "inputs": {"source": {"tokens": "character", "case": "lower", "unicode": "NFD", "may_be_empty": True}},
    "output": {"column": "target", "tokens": "symbol"},
}
LABELS: dict[str, Any] = {
    "inputs": {"source": {}, "more": {"tokens": "symbol"}},
    "output": {"kind": "label", "column": "target"},
}
PIECES: dict[str, Any] = {
    "inputs": {"source": {"tokens": "bpe", "vocabulary": 300}},
    "output": {"tokens": "bpe", "vocabulary": 300, "column": "target"},
}
ALONE: dict[str, Any] = {"inputs": {}, "output": {"column": "target"}}
RECIPES = {
    "words": WORDS,
    "lower": LOWER,
    "characters": CHARACTERS,
    "labels": LABELS,
    "pieces": PIECES,
    "alone": ALONE,
}

ODD = [
    ("the dog", "der  Hund", "a"),
    ("the dog", " der Hund ", "a b"),
    ("", "leer", "a"),
    ("blank target", "   ", "a"),
    ("\u3000", "\u00a0", "only spaces of Unicode"),
    ("no\u00a0break\u2003here", "thin\u2009space", "x"),
    ("Don't stop (at 3.5 km)!", "U.S. ... wow!!", "x"),
    ("ΟΔΟΣ ΣΑΣ", "Σ", "x"),
    ("e\u0301le\u0300ve", "\u00e9l\u00e8ve", "NFC and not"),
    ("\u00a8 \ufb01n", "\u2460", "x"),
    ("İstanbul", "ISTANBUL", "x"),
    ("日本語 テキスト", "標準 。", "x"),
    ("👩‍👩‍👧 family", "क्षत्रिय", "x"),
    ("<eos> <unk>", "<pad> \u2581x", "special"),
    ("a\x0bb\x1cc", "d\x85e", "control"),
    ('say "hi"', 'he said "no"', "quotes"),
    ("one two three four five", "eins zwei drei vier", "long"),
]


def pairs(copies: int = 8) -> list[tuple[str, str, str]]:
    """The odd rows between plain ones, so that blocks of both kinds occur."""
    plain = [(f"w{i % 37} x{i % 11}", f"y{i % 5} z{i % 3}", f"m{i % 2}") for i in range(60)]
    return [row for copy in range(copies) for row in [*plain, *(ODD if copy % 3 == 1 else [])]]


def tsv(path: Path, rows: list[tuple[str, str, str]], *, end: str = "\n", start: str = "") -> Path:
    lines = ["source\ttarget\tmore", *("\t".join(row) for row in rows)]
    path.write_bytes((start + end.join(lines) + end).encode())
    return path


def csv(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n') else cell

    lines = ["source,target,more", *(",".join(map(quoted, row)) for row in rows)]
    path.write_text("\n".join([*lines, 'first,"two\nlines",x', "last,letzte,x"]) + "\n", encoding="utf-8")
    return path


def jsonl(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    lines = [json.dumps(dict(zip(("source", "target", "more"), row, strict=True))) for row in rows]
    path.write_text("\n".join([*lines, "", '{"source": 5, "target": "five", "more": true}']) + "\n", encoding="utf-8")
    return path


TABLES: dict[str, Callable[[Path], Path]] = {
    "tsv": lambda folder: tsv(folder / "table.tsv", pairs()),
    "crlf": lambda folder: tsv(folder / "table.tsv", pairs(), end="\r\n", start="\ufeff"),
    "blank lines": lambda folder: tsv(folder / "table.tsv", pairs(3), end="\n\n", start="\n \n"),
    "csv": lambda folder: csv(folder / "table.csv", pairs()),
    "jsonl": lambda folder: jsonl(folder / "table.jsonl", pairs()),
}


def contents(corpus: Corpus) -> dict[str, Any]:
    """All that a training takes from its tables."""
    assert isinstance(corpus.train, Dataset)
    train = corpus.train
    return {
        "ids": {name: (store.flat.tolist(), store.offsets.tolist()) for name, store in train.stores.items()},
        "widths": train.widths.tolist(),
        "digest": train.digest,
        "vocabularies": {
            name: (field.vocabulary.symbols, field.vocabulary.counts) for name, field in corpus.fields.all.items()
        },
        "dev": [(dict(row), getattr(row, "where", "")) for row in corpus.dev],
        "baselines": [baseline.to_dict() for baseline in corpus.baselines],
        "notes": corpus.notes,
        "trained": (corpus.trained.inputs.tolist(), corpus.trained.pairs.tolist(), corpus.trained.highest),
    }


def by_rows(monkeypatch: pytest.MonkeyPatch, recipe: dict[str, Any], table: Path, **options: Any) -> dict[str, Any]:
    """The same, row by row."""
    with monkeypatch.context() as patch:
        patch.setattr(dataset, "block_columns", lambda *_: [])
        return contents(read_corpus(load_recipe(recipe), table, **options))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_PARALLEL", 700)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", RECIPES)
def test_blocks_give_what_rows_give(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLES[kind](tmp_path)
    plain = by_rows(monkeypatch, RECIPES[name], table)
    assert contents(read_corpus(load_recipe(RECIPES[name]), table)) == plain
    given = by_rows(monkeypatch, RECIPES[name], table, dev=table)
    assert contents(read_corpus(load_recipe(RECIPES[name]), table, dev=table)) == given
    assert given["ids"] != plain["ids"]


@pytest.mark.usefixtures("small_blocks")
def test_forgotten_numbers_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLES["tsv"](tmp_path)
    usual = contents(read_corpus(load_recipe(WORDS), table))
    monkeypatch.setattr(blocks, "MAX_PARTS", 20)
    assert contents(read_corpus(load_recipe(WORDS), table)) == usual


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"one field\n", "line 402: too few fields: 1 found, 3 expected"),
        (b"bad \xff byte\tx\ty\n", "line 402, byte 5: 0xff is not utf-8"),
        (b"a\tb\tc\td\n", "line 402: too many fields: 4 found"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, line: bytes, message: str) -> None:
    table = tsv(tmp_path / "table.tsv", [("a b", "c", "d")] * 400)
    table.write_bytes(table.read_bytes() + line)
    with pytest.raises(UserError, match=message):
        read_corpus(load_recipe(WORDS), table)
    skipped = read_corpus(load_recipe(WORDS | {"data": {"on_error": "skip"}}), table, dev=table)
    assert len(skipped.train) == 400
    assert any(message in note for note in skipped.notes)


# ---------------- Kept on disk


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every table is large, and read by this process; the folder of its encoded rows."""
    monkeypatch.setattr(dataset, "CACHED_FROM", 0)
    monkeypatch.setattr(dataset, "cores", lambda: 0)
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tables"


def without_cache_notes(corpus: Corpus) -> dict[str, Any]:
    found = contents(corpus)
    found["notes"] = [note for note in found["notes"] if "encoded" not in note]
    return found


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", RECIPES)
def test_processes_and_files_give_what_memory_gives(
    name: str, tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLES["tsv"](tmp_path)
    plain = by_rows(monkeypatch, RECIPES[name], table)
    monkeypatch.setattr(dataset, "cores", lambda: 2 if name in ("words", "labels") else 0)
    first = read_corpus(load_recipe(RECIPES[name]), table)
    assert without_cache_notes(first) == plain
    assert [*cached.iterdir()] == [path for path in cached.iterdir() if (path / "manifest.json").is_file()]

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the table is encoded again")

    monkeypatch.setattr(dataset, "encode_table", never)
    second = read_corpus(load_recipe(RECIPES[name]), table)
    assert without_cache_notes(second) == plain
    assert isinstance(second.train, Dataset)
    assert isinstance(second.train.stores["output"].flat, np.memmap)
    resumed = read_corpus(load_recipe(RECIPES[name]), table, fields=second.fields)
    assert without_cache_notes(resumed) == plain


def test_what_changes_rows_makes_another_entry(tmp_path: Path, cached: Path) -> None:
    table = tsv(tmp_path / "table.tsv", pairs())

    def entries(recipe: dict[str, Any], **options: Any) -> int:
        read_corpus(load_recipe(recipe), table, **options)
        return len([*cached.iterdir()])

    assert entries(WORDS) == 1
    assert entries(WORDS | {"training": {"seed": 7, "batch_rows": 3}, "encoder": {"size": 8}}) == 1
    assert entries(WORDS | {"inputs": {"source": {"case": "lower"}}}) == 2
    assert entries(WORDS | {"data": {"dev_share": 0.1}}) == 3
    assert entries(WORDS, dev=table) == 4
    assert entries(WORDS, columns=["more", "target"]) == 5
    content = table.read_bytes()
    times = table.stat()
    table.write_bytes(content.replace(b"w1 x1", b"w1 x2", 1))
    os.utime(table, ns=(times.st_atime_ns, times.st_mtime_ns))  # of the same size and time
    assert entries(WORDS) == 6


def test_other_vocabularies_make_another_entry(tmp_path: Path, cached: Path) -> None:
    table = tsv(tmp_path / "table.tsv", pairs())
    other = tsv(tmp_path / "other.tsv", pairs()[:300])
    fields = read_corpus(load_recipe(WORDS), other).fields
    read_corpus(load_recipe(WORDS), table)
    tuned = read_corpus(load_recipe(WORDS), table, fields=fields)
    assert tuned.fields.output.vocabulary == fields.output.vocabulary
    assert len([*cached.iterdir()]) == 3


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "manifest", "elsewhere", "json"])
def test_damage_is_noticed_and_the_table_encoded_again(
    damage: str, tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tsv(tmp_path / "table.tsv", pairs())
    plain = by_rows(monkeypatch, WORDS, table)
    read_corpus(load_recipe(WORDS), table)
    (entry,) = cached.iterdir()
    ids, manifest = entry / "ids-output.ids", entry / "manifest.json"
    if damage == "cut":
        ids.write_bytes(ids.read_bytes()[:-4])
    elif damage == "flipped":
        content = bytearray(ids.read_bytes())
        content[40] ^= 1
        ids.write_bytes(content)
    elif damage == "missing":
        ids.unlink()
    elif damage == "manifest":
        manifest.write_bytes(manifest.read_bytes()[:50])
    elif damage == "elsewhere":
        manifest.write_text(json.dumps({"../../../table.tsv": [1, "x"]}))
    else:
        (entry / "rows.json").write_text("[]")
        files = json.loads(manifest.read_text())
        files["rows.json"] = [2, table_cache.digest_files([entry / "rows.json"])]
        manifest.write_text(json.dumps(files))
    corpus = read_corpus(load_recipe(WORDS), table)
    assert any("damaged" in note and "encoded again" in note for note in corpus.notes)
    assert without_cache_notes(corpus) == plain
    assert not any("damaged" in note for note in read_corpus(load_recipe(WORDS), table).notes)


def test_old_entries_and_those_of_killed_runs_are_removed(
    tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tsv(tmp_path / "table.tsv", pairs())
    read_corpus(load_recipe(WORDS), table)
    (first,) = cached.iterdir()
    killed, elsewhere = cached / ".unfinished-x", cached / ".unfinished-y"
    for folder, machine in ((killed, platform.node()), (elsewhere, "another machine")):
        folder.mkdir()
        (folder / table_cache.PROCESS).write_text(f"999999999 {machine}")
    monkeypatch.setattr(table_cache, "MOST_BYTES", 1)
    read_corpus(load_recipe(LABELS), table)
    assert not first.exists()
    assert not killed.exists()
    assert elsewhere.exists()
    assert len([*cached.iterdir()]) == 2


def test_a_table_is_trained_on_where_nothing_can_be_kept(
    tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tsv(tmp_path / "table.tsv", pairs())
    plain = by_rows(monkeypatch, WORDS, table)
    cached.parent.write_text("a file, where a folder should be")
    corpus = read_corpus(load_recipe(WORDS), table)
    (note,) = [note for note in corpus.notes if str(cached) in note]
    assert "SEQ2SEE_CACHE" in note
    assert without_cache_notes(corpus) == plain


def test_an_entry_that_is_whole_is_not_replaced(tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes encode a table at once: the one that is later must not take the files from under the other."""
    table = tsv(tmp_path / "table.tsv", pairs())
    plain = read_corpus(load_recipe(WORDS), table)
    (entry,) = cached.iterdir()
    before = {path.name: path.stat().st_ino for path in entry.rglob("*")}
    with monkeypatch.context() as patch:
        load = table_cache.TableCache.load
        patch.setattr(
            table_cache.TableCache,
            "load",
            lambda self, *given, check=True, **named: None if check else load(self, *given, check=check, **named),
        )
        again = read_corpus(load_recipe(WORDS), table)
    assert {path.name: path.stat().st_ino for path in entry.rglob("*")} == before
    assert [*cached.iterdir()] == [entry]
    assert len(again.train) == len(plain.train)


def test_of_several_processes_one_encodes_a_table(
    tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, encoded, begun = tsv(tmp_path / "table.tsv", pairs()), dataset.encode_table, list[str]()
    both_begin = threading.Barrier(2)
    begin = table_cache.TableCache.begin

    def begin_together(self: table_cache.TableCache) -> Path:
        both_begin.wait(60)  # neither has found an entry
        return begin(self)

    def encode(*given: Any, **named: Any) -> Any:
        begun.append("")
        return encoded(*given, **named)

    monkeypatch.setattr(table_cache.TableCache, "begin", begin_together)
    monkeypatch.setattr(dataset, "encode_table", encode)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: read_corpus(load_recipe(WORDS), table), range(2))
    assert len(begun) == 1
    assert without_cache_notes(first) == without_cache_notes(second)
    assert len([*cached.iterdir()]) == 1, "locks leave nothing behind"


# ---------------- Several files


def shard(folder: Path, suffix: str) -> Path:
    """The odd rows and others in three files."""
    folder.mkdir()
    rows = pairs()
    for number in range(3):
        part = rows[number * len(rows) // 3 : (number + 1) * len(rows) // 3]
        records = [dict(zip(("source", "target", "more"), row, strict=True)) for row in part]
        path = folder / f"part-{number}.{suffix.removesuffix('.zst')}"
        tables.write(path, records, ["source", "target", "more"])
        if suffix.endswith(".zst"):
            content = path.read_bytes()
            packed = [zstandard.compress(content[:100]), zstandard.compress(content[100:])]  # two frames are one file
            path.with_name(f"{path.name}.zst").write_bytes(b"".join(packed))
            path.unlink()
    return folder


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", ["tsv.gz", "jsonl.zst", "csv", "parquet"])
def test_several_files_are_one_table(suffix: str, tmp_path: Path, cached: Path) -> None:
    whole = tmp_path / f"table.{suffix.removesuffix('.zst')}"
    rows = [dict(zip(("source", "target", "more"), row, strict=True)) for row in pairs()]
    tables.write(whole, rows, ["source", "target", "more"])
    folder = shard(tmp_path / "shards", suffix)
    one = without_cache_notes(read_corpus(load_recipe(WORDS), whole))
    paths = [folder / f"*.{suffix}", folder]
    for path in paths[:1] if suffix == "parquet" else paths:  # opening a Parquet file takes a process
        several = without_cache_notes(read_corpus(load_recipe(WORDS), path))
        assert several["ids"] == one["ids"]
        assert several["trained"] == one["trained"]
        assert [values for values, _ in several["dev"]] == [values for values, _ in one["dev"]]
    assert {where.split("part-")[1][0] for _, where in several["dev"]} == {"0", "1", "2"}
    if suffix == "parquet":
        return
    (folder / f"part-3.{suffix}").write_bytes((folder / f"part-1.{suffix}").read_bytes())
    assert len(read_corpus(load_recipe(WORDS), folder).train) > len(one["widths"])


def test_errors_name_the_file_of_several(tmp_path: Path) -> None:
    folder = shard(tmp_path / "shards", "tsv")
    last = folder / "part-2.tsv"
    lines = len(last.read_bytes().splitlines())
    last.write_bytes(last.read_bytes() + b"one field\n")
    with pytest.raises(UserError, match=rf"part-2.tsv, line {lines + 1}: too few fields"):
        read_corpus(load_recipe(WORDS), folder / "*.tsv")
    (folder / "part-1.tsv").write_text("source\tother\tmore\na\tb\tc\n")
    with pytest.raises(
        UserError, match=r"part-1.tsv: columns source, other, more, but .*part-0.tsv has source, target"
    ):
        read_corpus(load_recipe(WORDS), folder)
    with pytest.raises(UserError, match="no file has a name like that"):
        read_corpus(load_recipe(WORDS), folder / "*.jsonl")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_zstandard_file_that_is_cut_short_is_refused(share: float, tmp_path: Path) -> None:
    rows = "".join(f"{number}-{number * 7919 % 1009}\tb\n" for number in range(3000))
    packed = zstandard.compress(f"source\ttarget\n{rows}".encode())
    path = tmp_path / "table.tsv.zst"
    path.write_bytes(packed + packed[: int(len(packed) * share)])
    with pytest.raises(UserError, match=r"table\.tsv\.zst: the Zstandard file is cut short"):
        read_corpus(load_recipe(WORDS), path)


def test_a_damaged_zstandard_file_and_a_missing_package_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.tsv.zst"
    path.write_bytes(b"source\ttarget\na\tb\n")
    with pytest.raises(UserError, match="not a Zstandard file, or a damaged one"):
        tables.read(path)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UserError, match=r"pip install 'seq2see\[zstd\]'"):
        tables.read(path)
    with pytest.raises(UserError, match=r"not as \.zst"):
        tables.write(path, [], ["a"])


def test_a_table_that_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tsv(tmp_path / "table.tsv", pairs())
    original = dataset.encode_table

    def changed(*arguments: Any, **options: Any) -> Any:
        encoded = original(*arguments, **options)
        table.write_bytes(table.read_bytes() + b"one\ttwo\tthree\n")
        return encoded

    monkeypatch.setattr(dataset, "encode_table", changed)
    with pytest.raises(UserError, match=r"table\.tsv: changed while it was read"):
        read_corpus(load_recipe(WORDS), table)
    assert not [*cached.iterdir()]
