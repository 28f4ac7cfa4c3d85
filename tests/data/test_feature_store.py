"""What a frozen network made of files: kept once, found again, whole after a crash."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from seq2see.data.feature_store import FeatureStore


def files(folder: Path, number: int) -> list[str]:
    paths = [folder / f"{i}.bin" for i in range(number)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [str(path) for path in paths]


def arrays(number: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(number, 2, 3)).astype(np.float16)


def test_what_was_kept_is_found_by_the_next_run(tmp_path: Path) -> None:
    paths, made = files(tmp_path, 4), arrays(4)
    store = FeatureStore(tmp_path / "kept", (2, 3))
    store.add(paths[:2], made[:2])
    store.add(paths[2:], made[2:])
    again = FeatureStore(tmp_path / "kept", (2, 3))
    assert len(again) == 4
    assert (again.read([paths[3], paths[0]]) == made[[3, 0]]).all()


def test_a_run_that_was_killed_leaves_a_good_beginning(tmp_path: Path) -> None:
    paths, made = files(tmp_path, 4), arrays(4)
    store = FeatureStore(tmp_path / "kept", (2, 3))
    store.add(paths[:3], made[:3])
    index, features = tmp_path / "kept" / "index.jsonl", tmp_path / "kept" / "features.bin"
    os.truncate(index, index.stat().st_size - 5)  # killed inside the last line of the index
    again = FeatureStore(tmp_path / "kept", (2, 3))
    assert [path in again for path in paths] == [True, True, False, False]
    again.add(paths[2:], made[2:])
    assert (FeatureStore(tmp_path / "kept", (2, 3)).read(paths) == made).all()
    os.truncate(features, 2 * 12 + 3)  # killed inside an array
    assert [path in FeatureStore(tmp_path / "kept", (2, 3)) for path in paths] == [True, True, False, False]


def test_a_file_that_has_changed_is_not_known(tmp_path: Path) -> None:
    paths, made = files(tmp_path, 2), arrays(2)
    store = FeatureStore(tmp_path / "kept", (2, 3))
    store.add(paths, made)
    Path(paths[1]).write_bytes(b"something else")
    assert [path in FeatureStore(tmp_path / "kept", (2, 3)) for path in paths] == [True, False]
    assert "nowhere.bin" not in FeatureStore(tmp_path / "kept", (2, 3))
