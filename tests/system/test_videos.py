"""Videos in, words or labels out: shipped recipes, made small, learn what no single frame tells."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import seq2see
from seq2see.cli.app import run
from seq2see.errors import Notice, UserError
from tests.clips import av, filmed, table

SMALL = [
    "inputs.video.height=24",
    "inputs.video.width=24",
    "encoder.size=24",
    "encoder.dropout=0",
    "attention.size=24",
    "decoder.size=32",
    "decoder.dropout=0",
    "training.batch_rows=20",
    "training.learning_rate=0.005",
    "training.minutes=0",
    "training.report_every=60",
]


def blind(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The files with one another's outputs."""
    mixed = [captions for _, captions in rows]
    random.Random(3).shuffle(mixed)
    return [(file, captions) for (file, _), captions in zip(rows, mixed, strict=True)]


def test_words_are_written_of_what_moves(tmp_path: Path) -> None:
    captions = {"left": "it moves left", "right": "it moves right", "up": "it goes up", "down": "it goes down"}
    rows = [(file, captions[direction]) for file, direction in filmed(tmp_path, 240, 1)]
    data, dev = table(tmp_path / "train.tsv", rows[:200]), table(tmp_path / "dev.tsv", rows[200:])
    small = [
        *SMALL,
        "encoder.motion=[8,16]",
        "encoder.spans=[3,3]",
        "encoder.frame=mean",
        "encoder.layers=1",
        "training.average=1",
    ]
    small += [
        "search.max_length=6",
        "inputs.video.augment={}",
        "decoder.embedding.size=8",
        "loss.ctc=0",
        "evaluation.metrics=[exact,wer]",
    ]
    model = seq2see.train("video-captioning", data=data, dev=dev, out=tmp_path / "run", updates=200, overrides=small)
    seen = model.evaluate(dev)
    assert seen.metrics["exact"] > 0.8
    assert model.evaluate(table(tmp_path / "blind.tsv", blind(rows[200:]))).metrics["exact"] < 0.5
    path = str(tmp_path / rows[200][0])
    answer = seq2see.load(tmp_path / "run").predict(path)
    assert answer.looks.layouts["video"] == {"kind": "frames", "shape": [len(model.places(path))]}
    assert answer.looks.inputs["video"][:2] == ["0.00 s", "0.10 s"]
    assert answer.looks.save(tmp_path / "look.png").stat().st_size > 1000


def test_labels_are_learned_and_turn_round_with_the_clip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = filmed(tmp_path, 140, 2, ("left", "right"))
    data = table(tmp_path / "train.tsv", rows[:100], "video\tlabel")
    dev = table(tmp_path / "dev.tsv", rows[100:], "video\tlabel")
    small = [*SMALL, "inputs.video.frames=6", "inputs.video.colour=grey", "encoder.channels=[4,8]"]
    small += ["encoder.motion=[8,16]", "inputs.video.augment={}"]
    out = tmp_path / "run"
    model = seq2see.train("video-classification", data=data, dev=dev, out=out, updates=60, overrides=small)
    report = model.evaluate(dev, reverse=True)
    assert report.metrics["accuracy"] > 0.85
    assert report.reversed["accuracy"] < 0.15, "what goes left goes right when time runs backwards"
    assert report.to_dict()["reversed"]["accuracy"] == report.reversed["accuracy"]
    assert "backwards" in report.text()
    capsys.readouterr()
    run(["evaluate", str(out), "--data", str(dev), "--reverse", "--json"])
    assert json.loads(capsys.readouterr().out)["reversed"] == pytest.approx(report.reversed)
    mixed = table(tmp_path / "blind.tsv", blind(rows[100:]), "video\tlabel")
    assert model.evaluate(mixed).metrics["accuracy"] < 0.75


def test_regions_of_frames_are_looked_at(tmp_path: Path) -> None:
    rows = filmed(tmp_path, 12, 4)
    data = table(tmp_path / "train.tsv", rows, "video\tlabel")
    small = [*SMALL, "inputs.video.frames=3", "encoder.channels=[4,8]", "encoder.motion=[4]", "encoder.regions=true"]
    small += ["attention.over=video.regions"]
    model = seq2see.train("video-classification", data=data, dev=data, out=tmp_path / "run", updates=3, overrides=small)
    answer = model.predict(str(tmp_path / rows[0][0]))
    layout = {"kind": "frames-grid", "shape": [3, 6, 6], "parts": [36] * 3}
    assert answer.looks.layouts["video.regions"] == layout
    assert answer.looks.weights.shape == (1, 3 * 6 * 6)
    assert answer.looks.weights.sum() == pytest.approx(1.0, abs=1e-4)
    assert model.places(str(tmp_path / rows[0][0]))[37].endswith(" s 1,2")
    assert answer.looks.save(tmp_path / "look.png").stat().st_size > 1000


def test_bad_files_are_reported_together_or_left_out(tmp_path: Path) -> None:
    rows = filmed(tmp_path, 24, 3)
    clips = tmp_path / "clips"
    with av.open(str(clips / "none.avi"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 32, 32, "yuv420p"
        container.start_encoding()
    (clips / "words.mp4").write_text("no video", encoding="utf-8")
    bad = [(f"clips/{name}", "left") for name in ("gone.mp4", "none.avi", "words.mp4")]
    data = table(tmp_path / "mixed.tsv", [*bad, *rows], "video\tlabel")
    short = [*SMALL, "training.updates=2"]
    with pytest.raises(UserError) as stopped:
        seq2see.train("video-classification", data=data, out=tmp_path / "stop", overrides=short)
    message = str(stopped.value)
    assert "3 rows" in message
    for line, name in enumerate(["gone.mp4", "none.avi", "words.mp4"], start=2):
        assert f"line {line}, column 'video': clips/{name}: " in message
    assert not (tmp_path / "stop").exists()
    skipping = [*short, "data.on_error=skip"]
    model = seq2see.train("video-classification", data=data, out=tmp_path / "skip", overrides=skipping)
    with pytest.warns(Notice, match="3 rows"):
        assert model.evaluate(data).rows == 24
