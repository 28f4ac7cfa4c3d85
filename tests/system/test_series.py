"""Series to a label, to a text and to what comes next: trained small, and better than what is trivial."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seq2see
from seq2see.cli.app import run
from seq2see.data.series_files import SeriesInput
from seq2see.modalities.series import SeriesField
from seq2see.samples import SAMPLES
from seq2see.samples.series import EVENTS, write_motions, write_tides

QUICK = ["training.threads=1", "training.precision=float32", "training.average=1"]
SHORT = ["training.epochs=0", "training.updates=160", "training.report_every=160"]
LABEL = [*QUICK, *SHORT, "inputs.series.stride=2", "encoder.size=48"]
FORECAST = [*QUICK, "training.epochs=0", "training.updates=80", "training.report_every=80", "encoder.size=32"]


@pytest.fixture(scope="module")
def motions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("motions")
    write_motions(folder, {"train": 500, "dev": 80})
    return folder


@pytest.fixture(scope="module")
def tides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tides")
    write_tides(folder, {"train": 1500, "dev": 250})
    return folder


@pytest.fixture(scope="module")
def classifier(motions: Path) -> seq2see.Model:
    data, dev = motions / "train.tsv", motions / "dev.tsv"
    return seq2see.train("series-classification", data=data, dev=dev, out=motions / "run", overrides=LABEL)


@pytest.fixture(scope="module")
def forecaster(tides: Path) -> seq2see.Model:
    data, dev = tides / "train.tsv", tides / "dev.tsv"
    return seq2see.train("forecasting", data=data, dev=dev, out=tides / "run", overrides=FORECAST)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def on_event(row: dict[str, str], prediction: seq2see.Prediction) -> tuple[float, float]:
    """(share of the attention on what happens, share of the time that this takes), two steps more on both sides."""
    at = int(row["at"])
    steps = np.array([int(name.removeprefix("t=")) for name in prediction.looks.inputs["series"]])
    inside = (steps >= at - 2) & (steps < at + EVENTS[row["label"]] + 2)
    return float(prediction.looks.weights[0][inside].sum()), float(inside.mean())


def test_a_label_is_found_and_looked_at_where_it_happens(classifier: seq2see.Model, motions: Path) -> None:
    report = classifier.evaluate(motions / "dev.tsv")
    assert report.metrics["accuracy"] > 0.65
    assert report.baseline["accuracy"] < 0.4
    short = [row for row in rows(motions / "dev.tsv") if row["label"] in ("drop", "shake")]
    predictions = classifier.predict([row["series"] for row in short])
    right = [pair for pair in zip(short, predictions, strict=True) if pair[0]["label"] == pair[1].label]
    looked, chance = np.mean([on_event(row, prediction) for row, prediction in right], axis=0)
    assert looked > 1.5 * chance


def test_a_model_that_has_learned_nothing_knows_no_better_than_chance(motions: Path, tmp_path: Path) -> None:
    data, dev = motions / "train.tsv", motions / "dev.tsv"
    overrides = [*LABEL, "training.updates=1", "training.report_every=1", "training.learning_rate=1e-9"]
    model = seq2see.train("series-classification", data=data, dev=dev, out=tmp_path / "run", overrides=overrides)
    assert model.evaluate(dev).metrics["accuracy"] < 0.5


def test_what_was_looked_at_matters(classifier: seq2see.Model, motions: Path) -> None:
    found = classifier.faithful(motions / "dev.tsv", rows=8, places=40)
    agreements = {one.measure: one for one in found.agreements}
    assert set(agreements) == {"occlusion", "gradient"}
    assert agreements["gradient"].tau.value > agreements["gradient"].shuffled_tau.value


def test_a_forecast_is_better_than_the_last_value_and_the_mean(forecaster: seq2see.Model, tides: Path) -> None:
    report = forecaster.evaluate(tides / "dev.tsv")
    assert report.metrics["mae"] < 0.5 * report.baseline["mae"]
    futures = [np.array(row["future"].split(), dtype=float) for row in rows(tides / "dev.tsv")]
    spread = np.abs(np.stack(futures) - np.mean(futures)).mean()
    assert report.metrics["mae"] < 0.5 * spread
    prediction = forecaster.predict(rows(tides / "dev.tsv")[0]["history"])
    assert np.array(prediction.vector).shape == (12,)
    assert np.abs(np.array(prediction.vector)).max() < 10, "metres, not deviations"
    assert prediction.looks.weights.shape[0] == 1
    assert prediction.looks.weights.sum() == pytest.approx(1)


def test_several_channels_come_back_as_rows(tides: Path, tmp_path: Path) -> None:
    lines = ["x\ty"]
    for row in rows(tides / "train.tsv")[:60]:
        steps = row["history"].replace("?", "0").split("; ")
        lines.append("; ".join(steps[:40]) + "\t" + "; ".join(steps[40:43]))
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    overrides = [*QUICK, "training.epochs=0", "training.updates=2", "inputs={x: {kind: series}}", "output.column=y"]
    overrides += ["attention.over=x", "decoder.start=x"]
    model = seq2see.train("forecasting", data=tmp_path / "t.tsv", out=tmp_path / "run", overrides=overrides)
    answer = model.predict("1 2 1000; 2 3 1001").vector
    assert np.array(answer).shape == (3, 3)
    assert abs(np.array(answer)[0, 2] - 1013) < 60


@pytest.mark.slow
def test_a_series_can_be_described_in_words(motions: Path) -> None:
    overrides = [
        *QUICK,
        "output={kind: text, column: text}",
        "decoder={kind: recurrent, size: 64, start: none, embedding: {size: 16}}",
        "evaluation={metrics: [exact]}",
        "training.epochs=0",
        "training.updates=110",
        "training.report_every=110",
        "encoder.size=48",
        "inputs.series.stride=2",
    ]
    data, dev = motions / "train.tsv", motions / "dev.tsv"
    model = seq2see.train("series-classification", data=data, dev=dev, out=motions / "text", overrides=overrides)
    prediction = model.predict(rows(dev)[0]["series"])
    assert prediction.text is not None
    assert prediction.text.startswith("a ")
    assert prediction.looks.weights.shape[0] == len(prediction.tokens)
    texts = [row["text"] for row in rows(dev)]
    assert model.evaluate(dev).metrics["exact"] > max(texts.count(text) for text in texts) / len(texts)


@pytest.mark.parametrize("form", ["csv", "npy", "parquet"])
def test_files_are_read_as_cells_are(classifier: seq2see.Model, motions: Path, tmp_path: Path, form: str) -> None:
    row = rows(motions / "dev.tsv")[3]
    values = np.array(
        [[float("nan" if one == "?" else one) for one in step.split()] for step in row["series"].split(";")]
    )
    path = tmp_path / f"s.{form}"
    if form == "csv":
        path.write_text("x,y,z\n" + "".join(",".join(map(str, step)) + "\n" for step in values), encoding="utf-8")
    elif form == "npy":
        np.save(path, values)
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(dict(zip("xyz", values.T, strict=True))), path)
    overrides = [*QUICK, "training.epochs=0", "training.updates=1", "inputs.series.source=files"]
    table = tmp_path / "t.tsv"
    table.write_text("series\tlabel\n" + f"s.{form}\ta\ns.{form}\tb\n" * 4, encoding="utf-8")
    dev = tmp_path / "dev.tsv"
    dev.write_text(f"series\tlabel\ns.{form}\ta\n", encoding="utf-8")
    model = seq2see.train("series-classification", data=table, dev=dev, out=tmp_path / "run", overrides=overrides)
    seen = model.bundle.fields.inputs["series"].batch([str(path)])
    field = SeriesField(SeriesInput(indicator=True))
    field.build([row["series"]])
    assert np.allclose(seen.values[0].numpy(), field.batch([row["series"]]).values[0].numpy(), atol=1e-4)
    assert model.predict(str(path)).label in ("a", "b")


def test_a_series_may_be_an_array_or_lists(classifier: seq2see.Model) -> None:
    values = np.random.default_rng(0).normal(size=(30, 3))
    values[4, 1] = np.nan
    text = "; ".join(" ".join(map(str, step)) for step in values)
    lists = [[None if np.isnan(one) else one for one in step] for step in values.tolist()]
    expected = classifier.predict(text).looks.weights
    given: list[Any] = [values, lists, json.dumps(lists)]
    for value in given:
        assert np.allclose(classifier.predict({"series": value}).looks.weights, expected, atol=1e-5)


def test_commands_read_write_and_draw(
    classifier: seq2see.Model, forecaster: seq2see.Model, motions: Path, tides: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series, history = rows(motions / "dev.tsv")[0]["series"], rows(tides / "dev.tsv")[0]["history"]
    for model, value, kind in ((motions / "run", series, "label"), (tides / "run", history, "vector")):
        capsys.readouterr()
        run(["predict", str(model), value, "--json", "--looks", "-"])
        record = json.loads(capsys.readouterr().out)
        assert kind in record
        assert record["looks"]["layout"]["kind"] == "frames"
        for ending in ("png", "svg", "html"):
            run(["look", str(model), value, "--out", str(model / f"look.{ending}")])
            assert (model / f"look.{ending}").stat().st_size > 5_000
        run(["show", str(model)])
    run(["explain", str(motions / "run"), series])
    written = tides / "predicted.tsv"
    run(["predict", str(tides / "run"), "--file", str(tides / "dev.tsv"), "--to", str(written)])
    assert len(rows(written)[0]["prediction"].split()) == 12


def test_samples_are_made_for_these_recipes() -> None:
    assert SAMPLES["motions"].recipes == ("series-classification",)
    assert SAMPLES["tides"].recipes == ("forecasting",)
