"""Data for the models that are there: every row has the answer that its rule says, the same each time."""

from __future__ import annotations

import json
import random
import wave
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seq2see.data.tables import read
from seq2see.samples import SAMPLES
from seq2see.samples.conversions import draw_date, draw_number, number_in_words
from seq2see.samples.sentences import in_german
from seq2see.samples.signals import CODE, RATE, beeps, times_of, write_lines
from seq2see.samples.texts import Scene

SMALL = {"train": 30, "dev": 10}


@pytest.mark.parametrize("name", ["dates", "numbers", "sums", "german", "orders", "reviews", "morse"])
def test_the_same_rows_each_time_and_others_by_another_seed(tmp_path: Path, name: str) -> None:
    rows = {"rows": SMALL} if "rows" in SAMPLES[name].options else {}
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        written = SAMPLES[name].write(tmp_path / folder, seed=seed, **rows)
        assert list(written) == ["train.tsv", "dev.tsv"]
    tables = [(tmp_path / folder / "train.tsv").read_bytes() for folder in "abc"]
    assert tables[0] == tables[1] != tables[2]


def test_dates_are_those_that_are_written() -> None:
    draw = random.Random(1)
    plain = 0
    for _ in range(300):
        row = draw_date(draw)
        meant = date.fromisoformat(row["iso"])
        for form in ("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d %Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d"):
            try:
                found = datetime.strptime(row["written"], form).date()
            except ValueError:
                continue
            plain += 1
            assert found == meant
            break
        assert str(meant.year) in row["written"]
    assert plain > 100


def test_words_of_numbers_are_all_different() -> None:
    assert len({number_in_words(number) for number in range(12_000)}) == 12_000
    assert number_in_words(999_999) == "nine hundred and ninety-nine thousand nine hundred and ninety-nine"
    draw = random.Random(1)
    rows = [draw_number(draw) for _ in range(100)]
    assert all(row["words"] == number_in_words(int(row["digits"])) for row in rows)


def test_sums_are_right_and_none_is_in_both_tables(tmp_path: Path) -> None:
    written = SAMPLES["sums"].write(tmp_path)
    assert f"{sum(written.values()):,}" in SAMPLES["sums"].about
    train, dev = ([row.values for row in read(tmp_path / name)] for name in written)
    assert not {row["sum"] for row in train} & {row["sum"] for row in dev}
    for row in dev:
        plus = "+" in row["sum"]
        first, second = map(int, row["sum"].split("+" if plus else "-"))
        assert int(row["result"]) == (first + second if plus else first - second) >= 0


def test_german_agrees_and_has_its_verb_second() -> None:
    scene = Scene(random.Random(1))
    scene.who, scene.looks, scene.action = "man", ["tired", "old"], "sleeping"
    scene.where, scene.when = "under a tree", "at noon"
    assert in_german(scene) == "mittags schläft ein müder alter Mann unter einem Baum"
    scene.who, scene.looks, scene.when = "girl", ["young"], ""
    assert in_german(scene) == "ein junges Mädchen schläft unter einem Baum"
    scene.who, scene.action, scene.where = "cat", "eating an apple", ""
    assert in_german(scene) == "eine junge Katze isst einen Apfel"


def test_only_the_history_tells_the_last_reply(tmp_path: Path) -> None:
    SAMPLES["orders"].write(tmp_path, rows={"train": 200, "dev": 1})
    rows = [row.values for row in read(tmp_path / "train.tsv")]
    last = [row for row in rows if row["response"].startswith("so it is")]
    assert last
    for row in last:
        table = row["response"].split()[-1]
        assert f"table {table} |||" in row["history"]
        assert table not in row["last"]
    assert all(row["history"].split(" ||| ")[-1] == row["last"] for row in rows)


def test_words_of_reviews_are_as_frequent_in_both_labels(tmp_path: Path) -> None:
    SAMPLES["reviews"].write(tmp_path, rows={"train": 2000, "dev": 1})
    rows = [row.values for row in read(tmp_path / "train.tsv")]
    shares = [
        np.mean(["lovely" in row["text"] for row in rows if row["label"] == label])
        for label in ("positive", "negative")
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.08)


def test_morse_is_heard_as_it_is_written(tmp_path: Path) -> None:
    assert len(set(CODE.values())) == 26
    sound = np.abs(beeps(["e", "t"], unit=0.05, pitch=700))
    loud = [sound[start : start + 400].max() > 0.2 for start in range(0, len(sound), 400)]
    assert "".join("x" if one else " " for one in loud).strip() == "x   xxx"
    assert times_of(["e", "t"], unit=0.05) == [("e", 0.05, 0.1), ("t", 0.25, 0.4)]
    SAMPLES["morse"].write(tmp_path, rows={"dev": 3})
    for row in read(tmp_path / "dev.tsv"):
        with wave.open(str(tmp_path / row.values["audio"])) as file:
            assert file.getframerate() == RATE
            seconds = file.getnframes() / RATE
        times = json.loads(row.values["times"])
        assert [letter for letter, _, _ in times] == row.values["text"].split()
        assert times[-1][2] < seconds < times[-1][2] + 0.2


def test_lines_are_pictures(tmp_path: Path) -> None:
    written = write_lines(tmp_path, lines=20)
    assert sum(written.values()) == 20
    row = next(iter(read(tmp_path / "train.tsv"))).values
    with Image.open(tmp_path / row["image"]) as image:
        assert image.width > image.height
