"""The memory of the largest batch is known before the first update; runs that repeat their bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seq2see.data.batches import Batch
from seq2see.data.vocabulary import EOS
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.recipe import load_recipe
from seq2see.recipe.load import left_out, limits_of
from seq2see.training import losses, memory
from seq2see.training.dataset import read_corpus
from seq2see.training.feeds import RowFeed
from seq2see.training.losses import Objective
from seq2see.training.memory import batch_bytes, check_batch, free_memory, memory_limit, update_bytes
from seq2see.training.rewards import Rewards, Symbols
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, last_checkpoint, run, same, words

GIGABYTE = 1 << 30


def built(folder: Path, **training: Any) -> tuple[Bundle, RowFeed]:
    recipe = load_recipe({**ROWS, "training": {**ROWS["training"], "updates": 1, **training}})
    corpus = read_corpus(recipe, words(folder / "words.tsv"))
    assert isinstance(corpus.train, Dataset)
    return Bundle.create(corpus.recipe, corpus.fields), RowFeed(corpus.train, recipe.training)


def test_each_further_row_takes_as_much_as_the_one_before(tmp_path: Path) -> None:
    bundle, feed = built(tmp_path)
    weights = {name: tensor.clone() for name, tensor in bundle.network.state_dict().items()}
    random = torch.get_rng_state()
    for rows in (1, 3, 12, 30):
        assert batch_bytes(bundle, feed, 0, rows) == pytest.approx(update_bytes(bundle, feed, [0] * rows), rel=0.1)
    assert update_bytes(bundle, feed, [0] * 30) > 5 * update_bytes(bundle, feed, [0])
    assert same(weights, bundle.network.state_dict())
    assert all(parameter.grad is None for parameter in bundle.network.parameters())
    assert bool((torch.get_rng_state() == random).all())


@pytest.mark.parametrize("rows", [[0], [0, 1, 2]])
def test_rows_read_twice_and_outputs_that_are_drawn_are_measured_each_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[int]
) -> None:
    """An odd number of rows and of samples; outputs as long as they can be drawn."""
    loss = {"consistency": 1.0, "reward": {"metric": "edit", "samples": 3}}
    recipe = load_recipe({**ROWS, "loss": loss})
    corpus = read_corpus(recipe, words(tmp_path / "words.tsv"))
    assert isinstance(corpus.train, Dataset)
    bundle, feed = Bundle.create(corpus.recipe, corpus.fields), RowFeed(corpus.train, recipe.training)
    objective = Objective(recipe.loss, corpus.fields, rewards=Rewards(recipe.loss.reward, corpus.train))

    def drawn(network: EncoderDecoder, batch: Batch, *, samples: int, longest: int) -> list[Symbols]:
        return [(EOS,) * longest] * (samples * len(batch.rows))

    monkeypatch.setattr(losses, "draw_outputs", drawn)
    peaks = []
    for share in (0.0, 1.0):
        objective.begin(share)
        with memory.Allocations() as allocated:
            total = objective(bundle.network.train(), feed.data.batch(rows * objective.passes)).total
            torch.autograd.grad(total, list(bundle.network.parameters()), allow_unused=True)
        peaks.append(allocated.most)
    assert peaks[1] > peaks[0]
    assert update_bytes(bundle, feed, rows) == pytest.approx(peaks[1], rel=0.05)
    assert bundle.network.training


def test_the_peak_is_what_is_held_at_once() -> None:
    with memory.Allocations() as allocated:
        for _ in range(5):
            held = torch.ones(1000) + 1
    assert allocated.most <= 3 * held.nbytes
    assert allocated.now <= 2 * held.nbytes


@pytest.mark.parametrize("key", ["batch_tokens", "batch_rows"])
def test_a_batch_that_cannot_fit_is_refused_with_a_setting_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    bundle, feed = built(tmp_path, **({"batch_rows": 30, "batch_tokens": 9999} if key == "batch_rows" else {}))
    longest = int(np.argmax(feed.data.widths.sum(1)))
    room = update_bytes(bundle, feed, [longest] * 3)
    monkeypatch.setattr(memory, "memory_limit", lambda: room)
    monkeypatch.setattr(memory, "free_memory", lambda: room)
    with pytest.raises(UserError, match=rf"set training\.{key}=\d+") as refused:
        check_batch(bundle, feed)
    smaller = int(str(refused.value).rpartition("=")[2])
    changes = {"batch_rows": 30, "batch_tokens": 9999} if key == "batch_rows" else {}
    fitting = built(tmp_path, **{**changes, key: smaller})
    assert check_batch(*fitting) is None
    assert check_batch(bundle, feed, processes=30) is None  # each has one row


def test_a_batch_that_fits_beside_nothing_else_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: GIGABYTE)
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    monkeypatch.setattr(memory, "SMALL", 0)
    told = RecordingListener()
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", updates=1, listeners=[told])
    assert any("GB are free now" in note and "max_length" in note for note in told.notes)


def test_the_limit_of_a_container_counts(tmp_path: Path) -> None:
    system = tmp_path / "meminfo"
    system.write_text("MemTotal: 9999999 kB\nMemAvailable:    5000000 kB\n")
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    assert memory_limit(tmp_path) == 1_000_000
    assert free_memory(tmp_path, system) == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(tmp_path, system) == 5_000_000 * 1024


# ---------------------------------------------------------------- training.deterministic


def test_a_deterministic_run_does_not_depend_on_the_threads(tmp_path: Path) -> None:
    recipe = {**ROWS, "training": {**ROWS["training"], "threads": 0, "deterministic": True, "updates": 6}}
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            told = RecordingListener()
            run(recipe, words(tmp_path / "words.tsv"), tmp_path / str(threads), listeners=[told])
            assert torch.get_num_threads() == threads
            assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(before)
    assert any("training.deterministic" in note and "one thread" in note for note in told.notes)
    assert same(last_checkpoint(tmp_path / "1").weights, last_checkpoint(tmp_path / "2").weights)


def test_what_does_not_repeat_gives_way_to_deterministic_and_is_told() -> None:
    overrides = ["training.deterministic=true"]
    training = load_recipe("transliteration", overrides=overrides).training
    assert (training.minutes, training.precision, training.epochs) == (0, "float32", 30)
    notes = left_out("transliteration", overrides)
    assert [note.partition(" ")[0] for note in notes] == ["training.minutes", "training.precision"]
    with pytest.raises(UserError, match=r"training\.minutes: .*--epochs"):
        load_recipe("translation", overrides=overrides)
    assert load_recipe("translation", overrides=[*limits_of(epochs=3, updates=None, minutes=None), *overrides])


@pytest.mark.parametrize("setting", ["training.minutes=1", "training.threads=2", "training.precision=auto"])
def test_what_does_not_repeat_is_refused_with_deterministic(setting: str) -> None:
    key = setting.partition("=")[0]
    with pytest.raises(UserError, match=key):
        load_recipe("transliteration", overrides=["training.deterministic=true", setting])


@pytest.mark.parametrize("longest", [40, 1500, 5000])
@pytest.mark.parametrize("least", [0, 1200])
def test_the_longest_rows_are_found_in_pieces(longest: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    widths = (
        np.random.default_rng(0).integers(least // 2, max(longest, least + 2) // 2, size=(700, 2)).astype(np.uint16)
    )
    found = memory._longest_rows(widths)
    symbols = widths.sum(1)
    measurable = symbols[symbols <= memory.LONGEST_MEASURED]
    wanted = measurable.max() if len(measurable) else symbols.min()
    assert found == (symbols.max(), np.flatnonzero(symbols == wanted)[0], wanted)
    monkeypatch.setattr(memory, "ROWS_AT_ONCE", 64)
    assert memory._longest_rows(widths) == found
