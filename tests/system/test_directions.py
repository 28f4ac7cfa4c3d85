"""Which way does time run? Clips without labels, read both ways by the system itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import seq2see
from seq2see.cli.app import run
from seq2see.errors import UserError
from seq2see.modalities.video import forwards
from seq2see.recipe import load_recipe
from seq2see.training.dataset import read_corpus
from tests.clips import faded, filmed, table
from tests.system.test_videos import SMALL

TINY = [*SMALL, "inputs.video.frames=6", "encoder.motion=[8,16]", "encoder.spans=[3,3]", "inputs.video.augment={}"]


def test_each_clip_comes_both_ways_and_stays_on_one_side(tmp_path: Path) -> None:
    data = table(tmp_path / "clips.tsv", faded(tmp_path, 12, 1), "video")
    recipe = load_recipe("arrow-of-time", overrides=[*TINY, "data.dev_share=0.3"])
    corpus = read_corpus(recipe, data)
    learned = corpus.fields.inputs["video"]
    train = [learned.value(corpus.train.stores["video"][row]) for row in range(len(corpus.train))]
    dev = [row["video"] for row in corpus.dev]
    assert len(train) + len(dev) == 24
    assert corpus.fields.label_output.labels == ["backward", "forward"]
    assert corpus.fields.label_output.counts == [len(train) // 2] * 2
    assert [row["output"] for row in corpus.dev] == ["forward", "backward"] * (len(dev) // 2)
    assert not {forwards(value) for value in train} & {forwards(value) for value in dev}
    assert all(train.count(value) == 1 and forwards(value) in train for value in train)
    assert all(forwards(row["video"]).endswith(f"1-{row.line - 2}.mp4") for row in corpus.dev), "a row keeps its line"


def test_the_arrow_of_time_is_seen_where_there_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = faded(tmp_path, 90, 2)
    data, dev = table(tmp_path / "train.tsv", rows[:60], "video"), table(tmp_path / "dev.tsv", rows[60:], "video")
    out = tmp_path / "run"
    model = seq2see.train("arrow-of-time", data=data, dev=dev, out=out, updates=45, overrides=TINY)
    last = json.loads((out / "metrics.jsonl").read_text("utf-8").splitlines()[-1])
    assert [Path(sample["input"]).name for sample in last["samples"][:2]] == ["2-60.mp4", "2-60.mp4 (backwards)"]
    report = model.evaluate(dev)
    assert report.rows == 60
    assert report.metrics["accuracy"] > 0.85
    assert report.baseline["accuracy"] == 0.5

    both = [dict(row) for row in model.rows_of(dev)]
    mixed = [row["output"] for row in both]
    random.Random(3).shuffle(mixed)
    shuffled = [row | {"output": label} for row, label in zip(both, mixed, strict=True)]
    assert model.evaluate(shuffled).metrics["accuracy"] < 0.7
    steady = table(tmp_path / "steady.tsv", [(file,) for file, _ in filmed(tmp_path, 30, 9)], "video")
    assert model.evaluate(steady).metrics["accuracy"] < 0.75, "what goes one way all the time may come from either end"
    with pytest.raises(UserError, match="both ways"):
        model.evaluate(dev, reverse=True)

    capsys.readouterr()
    run(["predict", str(out), str(tmp_path / rows[60][0])])
    assert capsys.readouterr().out == "forward\n"
    run(["predict", str(out), "--file", str(dev), "--json"])
    predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(predictions) == 30, "what is asked about is read as it is"
    run(["evaluate", str(out), "--data", str(dev), "--json"])
    assert json.loads(capsys.readouterr().out)["rows"] == 60
    run(["show", str(out)])
    assert "output y: forward or backward, not from a column" in capsys.readouterr().out
    run(["score", str(out), "--data", str(dev), "--json"])
