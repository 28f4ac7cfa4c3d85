"""What a frozen network made of files: kept once, found again, whole after a crash."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from seq2see.data.feature_store import FeatureStore
from seq2see.locking import lock_folder


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


def test_runs_that_share_a_store_do_not_write_over_each_other(tmp_path: Path) -> None:
    paths, made = files(tmp_path, 6), arrays(6)
    one, other = (FeatureStore(tmp_path / "kept", (2, 3)) for _ in range(2))
    assert paths[1] not in other
    one.add(paths[:3], made[:3])
    other.add(paths[1:5], made[1:5])
    one.add(paths[4:], made[4:])
    assert len(FeatureStore(tmp_path / "kept", (2, 3))) == 6
    for store, known in ((one, paths), (other, paths[:5]), (FeatureStore(tmp_path / "kept", (2, 3)), paths)):
        assert (store.read(known) == made[: len(known)]).all()
    assert paths[1] in other


def test_a_run_waits_while_another_adds(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    paths, made = files(tmp_path, 2), arrays(2)
    store = FeatureStore(tmp_path / "kept", (2, 3))
    adding = Thread(target=store.add, args=(paths, made))
    with lock_folder(tmp_path / "kept", wait=True):
        adding.start()
        adding.join(0.2)
        assert adding.is_alive()
        assert len(store) == 0
    adding.join(10)
    assert (store.read(paths) == made).all()


def test_an_index_that_tells_of_a_file_twice_is_taken_as_far_as_it_is_good(tmp_path: Path) -> None:
    paths, made = files(tmp_path, 3), arrays(3)
    FeatureStore(tmp_path / "kept", (2, 3)).add(paths, made)
    index = tmp_path / "kept" / "index.jsonl"
    first, *others = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join([first, first, *others]))
    again = FeatureStore(tmp_path / "kept", (2, 3))
    assert [path in again for path in paths] == [True, False, False]
