"""Sounds in, words or labels out: the shipped recipe, made small, learns what one that hears nothing cannot know."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import seq2see
from seq2see.errors import Notice, UserError

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

TONES = {"low": 300.0, "middle": 700.0, "high": 1500.0, "top": 2800.0}
RATE = 8000


def spoken(words: list[str], draw: random.Random) -> tuple[np.ndarray, str]:
    """A tone for each word, of a pitch and a length of its own each time, with pauses between; and when the
    first of them is heard, as if it were the time of each."""
    noise = np.random.default_rng(draw.randint(0, 1 << 30))
    parts, times = list[np.ndarray](), list[tuple[str, float, float]]()
    for word in words:
        start = sum(map(len, parts)) / RATE
        pitch = TONES[word] * draw.uniform(0.93, 1.07)
        time = np.arange(round(draw.uniform(0.05, 0.09) * RATE)) / RATE
        parts += [np.sin(2 * np.pi * pitch * time) * np.hanning(len(time)), np.zeros(round(0.03 * RATE))]
        times.append((word, *(times[0][1:] if times else (start, start + len(time) / RATE))))
    sound = np.concatenate(parts) * draw.uniform(0.1, 0.9)
    return (sound + noise.normal(0, 0.003, len(sound))).astype(np.float32), json.dumps(times)


def sentences(folder: Path, number: int, seed: int) -> list[tuple[str, ...]]:
    """(file, the words in it, times); every third file at another rate, with two channels."""
    draw = random.Random(seed)
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(number):
        words = draw.choices(list(TONES), k=draw.randint(1, 3))
        (sound, times), path = spoken(words, draw), f"sounds/{seed}-{i}.wav"
        if i % 3:
            soundfile.write(folder / path, sound, RATE)
        else:
            soundfile.write(folder / path, np.stack([sound.repeat(2)] * 2, 1), 2 * RATE)
        rows.append((path, " ".join(words), times))
    return rows


def write_rows(path: Path, rows: list[tuple[str, ...]], columns: str = "audio\ttext\ttimes") -> Path:
    path.write_text("\n".join([columns, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


SMALL = [
    "inputs.audio.rate=8000",
    "inputs.audio.mels=16",
    "inputs.audio.augment.frequency_width=2",
    "inputs.audio.augment.time_width=20",
    "encoder.size=24",
    "encoder.layers=2",
    "encoder.dropout=0",
    "attention.size=24",
    "decoder.size=32",
    "decoder.dropout=0",
    "decoder.embedding.size=8",
    "training.batch_rows=24",
    "training.learning_rate=0.01",
    "training.minutes=0",
    "training.average=1",
    "training.report_every=60",
    "search.max_length=6",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tones")
    write_rows(path / "train.tsv", sentences(path, 240, 1))
    dev = sentences(path, 50, 2)
    write_rows(path / "dev.tsv", dev)
    mixed = [words for _, words, _ in dev]
    random.Random(3).shuffle(mixed)
    write_rows(path / "blind.tsv", [(row[0], words) for row, words in zip(dev, mixed, strict=True)], "audio\ttext")
    return path


def test_the_recipe_learns_what_is_said(folder: Path, tmp_path: Path) -> None:
    data, dev = folder / "train.tsv", folder / "dev.tsv"
    model = seq2see.train("speech-recognition", data=data, dev=dev, out=tmp_path / "run", updates=60, overrides=SMALL)
    report, blind = model.evaluate(dev), model.evaluate(folder / "blind.tsv")
    assert report.metrics["wer"] < 0.2
    assert blind.metrics["wer"] > 0.6
    assert report.baseline["wer"] > 0.6

    loaded = seq2see.load(tmp_path / "run")
    path = str(folder / "sounds" / "2-0.wav")
    answer = loaded.predict(path)
    assert answer.text == model.predict(path).text
    places = loaded.places(path)
    assert places[:3] == ["0.00 s", "0.04 s", "0.08 s"]
    assert answer.looks.layouts["audio"] == {"kind": "frames", "shape": [len(places)]}
    assert answer.looks.inputs["audio"] == places
    assert answer.looks.weights.shape == (len(answer.tokens), len(places))
    assert answer.looks.weights.sum(1) == pytest.approx(1.0, abs=1e-4)
    assert answer.looks.save(tmp_path / "look.png").stat().st_size > 1000


def test_times_teach_where_to_look(folder: Path, tmp_path: Path) -> None:
    """The pointing game: the place most looked at lies within the given time. By itself the attention goes on from word
    to word; the times say that it stays at the first."""
    shares = {}
    for weight in (0, 1):
        more = ["loss.alignment.column=times", f"loss.alignment.weight={weight}", "loss.ctc=0", "search.ctc=0"]
        run = tmp_path / str(weight)
        model = seq2see.train(
            "speech-recognition",
            data=folder / "train.tsv",
            dev=folder / "dev.tsv",
            out=run,
            updates=60,
            overrides=[*SMALL, *more],
            listeners=[],
        )
        shares[weight] = model.evaluate(folder / "dev.tsv").metrics["pointing"]
    assert shares[1] > 0.9
    assert shares[0] < 0.7
    assert "within the time of y_t" in str(seq2see.load(run).describe())


def test_labels_of_sounds_are_learned(tmp_path: Path) -> None:
    rows = sentences(tmp_path, 200, 5)
    labelled = [(file, "rising" if words.split()[-1] in ("high", "top") else "falling") for file, words, _ in rows]
    train = write_rows(tmp_path / "train.tsv", labelled[:160], "audio\tlabel")
    dev = write_rows(tmp_path / "dev.tsv", labelled[160:], "audio\tlabel")
    recipe = {
        "inputs": {"audio": {"kind": "sound", "rate": RATE, "mels": 16, "augment": {"noise": 0.1, "speed": 0.05}}},
        "output": {"kind": "label", "column": "label"},
        "encoder": {"kind": "pyramidal", "size": 16, "layers": 2},
        "attention": {"score": "none"},
        "training": {"epochs": 0, "updates": 60, "learning_rate": 0.01, "batch_rows": 24, "report_every": 50},
    }
    report = seq2see.train(recipe, data=train, dev=dev, out=tmp_path / "run").evaluate(dev)
    assert report.metrics["accuracy"] > 0.85
    assert report.baseline["accuracy"] < 0.7


def test_bad_files_are_reported_together_or_left_out(tmp_path: Path) -> None:
    rows = sentences(tmp_path, 30, 1)
    sounds = tmp_path / "sounds"
    soundfile.write(sounds / "none.wav", np.zeros(0, dtype=np.float32), RATE)
    soundfile.write(sounds / "long.wav", np.zeros(21 * RATE, dtype=np.float32), RATE)
    (sounds / "words.wav").write_text("no sound", encoding="utf-8")
    bad = [(f"sounds/{name}.wav", "low", "[]") for name in ("gone", "none", "long", "words")]
    table = write_rows(tmp_path / "mixed.tsv", [*bad, *rows])
    short = [*SMALL, "training.updates=2"]
    with pytest.raises(UserError) as stopped:
        seq2see.train("speech-recognition", data=table, out=tmp_path / "stop", overrides=short)
    message = str(stopped.value)
    assert "4 rows" in message
    for line, name in enumerate(["gone", "none", "long", "words"], start=2):
        assert f"line {line}, column 'audio': sounds/{name}.wav: " in message
    assert "21.0 s" in message
    assert not (tmp_path / "stop").exists()
    skipping = [*short, "data.on_error=skip"]
    model = seq2see.train("speech-recognition", data=table, out=tmp_path / "skip", overrides=skipping)
    with pytest.warns(Notice, match="4 rows"):
        assert model.evaluate(table).rows == 30
