"""Shards: which tables a path stands for, and who gets which."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seq2see.data.shards import names_several, shards_of, share_out
from seq2see.errors import UserError


def make(folder: Path, sizes: dict[str, int]) -> list[Path]:
    for name, size in sizes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * size)
    return [folder / name for name in sizes]


def test_a_folder_stands_for_its_tables(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(["b.tsv", "a.JSONL", "c.csv.gz", "d.parquet", "e.md", ".f.tsv", "tsv", "g/h.tsv"], 1))
    assert [path.name for path in shards_of(tmp_path)] == ["a.JSONL", "b.tsv", "c.csv.gz", "d.parquet"]


def test_a_pattern_stands_for_files_in_order_of_their_names(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(["z/1.tsv", "y/2.tsv", "x/0.tsv", "x/0.csv"], 1))
    assert [path.name for path in shards_of(tmp_path / "*" / "*.tsv")] == ["0.tsv", "1.tsv", "2.tsv"]
    assert [path.name for path in shards_of(tmp_path / "**" / "?.csv")] == ["0.csv"]


def test_a_table_whose_name_looks_like_a_pattern_is_a_table(tmp_path: Path) -> None:
    make(tmp_path, {"a[1].tsv": 1, "a1.tsv": 1})
    assert shards_of(tmp_path / "a[1].tsv") == [tmp_path / "a[1].tsv"]
    assert not names_several(tmp_path / "a[1].tsv")
    assert names_several(tmp_path / "a?.tsv")


def test_a_hugging_face_dataset_is_one_table(tmp_path: Path) -> None:
    make(tmp_path, {"state.json": 1, "part.parquet": 1})
    assert not names_several(tmp_path)
    assert shards_of(tmp_path) == [tmp_path]


@pytest.mark.parametrize("path", ["*.tsv", "missing.tsv", "."])
def test_nothing_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UserError, match=r"no (file|such file|table)"):
        shards_of(tmp_path / path)


@pytest.mark.parametrize("processes", [1, 2, 5, 40])
def test_every_shard_has_one_process_and_loads_are_even(tmp_path: Path, processes: int) -> None:
    draw = random.Random(processes)
    shards = make(tmp_path, {f"{number}.tsv": draw.randrange(1000) for number in range(30)})
    shares = share_out(shards, processes)
    assert len(shares) == processes
    assert sorted(shard for share in shares for shard in share) == sorted(shards)
    loads = [sum(shard.stat().st_size for shard in share) for share in shares]
    largest = max(shard.stat().st_size for shard in shards)
    assert max(loads) <= sum(loads) / processes + largest  # the bound of greedy scheduling (Graham, 1966)


def test_sharing_out_depends_on_names_and_sizes_alone(tmp_path: Path) -> None:
    sizes = {f"{number}.tsv": number % 3 for number in range(9)}
    first, second = make(tmp_path / "a", sizes), make(tmp_path / "b" / "c", sizes)
    random.Random(1).shuffle(second)
    names = [[[path.name for path in share] for share in share_out(shards, 4)] for shards in (first, second)]
    assert names[0] == names[1]
    assert {len(share) for share in names[0]} <= {2, 3}  # empty files are shared out too
