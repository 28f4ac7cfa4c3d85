"""The runtime's command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.conftest import inputs_of, original

Exported = Callable[[str], Path]
NAME = "transliteration"


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    from seq2see_runtime.cli import main

    code = main([str(argument) for argument in arguments])
    done = capsys.readouterr()
    return code, done.out, done.err


def test_predict_prints_the_text(exported: Exported, capsys: pytest.CaptureFixture[str]) -> None:
    value = inputs_of(NAME)[0]
    code, out, _ = call(capsys, "predict", exported(NAME), value, "--beam", 1)
    assert code == 0
    assert out == f"{original(NAME).predict(value, beam=1).text}\n"


def test_inputs_may_follow_options(exported: Exported, capsys: pytest.CaptureFixture[str]) -> None:
    values = inputs_of(NAME)[:2]
    _, out, _ = call(capsys, "predict", exported(NAME), values[0], "--beam", 1, values[1])
    assert out.splitlines() == [each.text for each in original(NAME).predict(values, beam=1)]


def test_predict_as_json_is_the_same_record(exported: Exported, capsys: pytest.CaptureFixture[str]) -> None:
    value = inputs_of(NAME)[0]
    code, out, _ = call(capsys, "predict", exported(NAME), value, "--looks", "-")
    found, wanted = json.loads(out), original(NAME).predict(value).to_dict(looks=True)
    assert code == 0
    assert found.keys() == wanted.keys()
    assert found["text"] == wanted["text"]
    assert found["looks"].keys() == wanted["looks"].keys()


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".txt"])
def test_tables_are_read(ending: str, exported: Exported, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    values, path = inputs_of(NAME), tmp_path / f"table{ending}"
    lines = [json.dumps({"latin": value}) for value in values] if ending == ".jsonl" else list(values)
    path.write_text("\n".join([*(["latin"] if ending in (".tsv", ".csv") else []), *lines]) + "\n", encoding="utf-8")
    code, out, _ = call(capsys, "predict", exported(NAME), "--file", path, "--beam", 1)
    assert code == 0
    assert out.splitlines() == [prediction.text for prediction in original(NAME).predict(values, beam=1)]


def test_samples_of_a_long_table_are_the_models(
    exported: Exported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    values = [inputs_of(NAME)[0]] * 260
    (tmp_path / "lines.txt").write_text("\n".join(values) + "\n", encoding="utf-8")
    options = ["--sample", "--seed", 1, "--max-length", 4]
    _, out, _ = call(capsys, "predict", exported(NAME), "--file", tmp_path / "lines.txt", *options)
    wanted = original(NAME).predict(values, sample=True, seed=1, max_length=4)
    assert out.splitlines() == [each.text for each in wanted]


def test_files_are_found_beside_their_table(
    exported: Exported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = Path(inputs_of("image-captioning")[0])
    (tmp_path / "one.png").write_bytes(path.read_bytes())
    (tmp_path / "table.tsv").write_text("image\none.png\n", encoding="utf-8")
    code, out, _ = call(capsys, "predict", exported("image-captioning"), "--file", tmp_path / "table.tsv", "--beam", 1)
    assert code == 0
    assert out.strip() == original("image-captioning").predict(str(path), beam=1).text


def test_score_is_the_models(exported: Exported, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    values, model = inputs_of(NAME), original(NAME)
    rows = [{"latin": value, "native": model.predict(value).text} for value in values]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, out, _ = call(capsys, "score", exported(NAME), "--data", tmp_path / "pairs.jsonl", "--json")
    found, wanted = json.loads(out), model.score(rows)
    assert code == 0
    assert found["tokens"] == wanted.tokens
    assert found["perplexity"] == pytest.approx(wanted.perplexity, rel=1e-4)


@pytest.mark.parametrize("ending", [".json", ".png"])
def test_look_writes_where_it_looked(
    ending: str, exported: Exported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / f"look{ending}"
    assert call(capsys, "look", exported(NAME), inputs_of(NAME)[0], "--out", out)[0] == 0
    assert out.stat().st_size > 100


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["predict", "nowhere", "x"], "nowhere"),
        (["predict", "MODEL"], "latin|source"),
        (["predict", "MODEL", "--file", "missing.tsv"], "missing.tsv"),
        (["predict", "MODEL", "--file", "table.docx"], ".docx"),
        (["predict", "MODEL", "x", "--looks", "x.png"], "x.png"),
        (["score", "MODEL", "--data", "wrong.tsv"], "latin"),
        (["predict", "MODEL", "--file", "ragged.tsv"], "line 3"),
        (["predict", "MODEL", "--file", "twice.csv"], "line 1"),
        (["look", "MODEL", "abca", "--out", "nowhere/x.json"], "nowhere"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str],
    named: str,
    exported: Exported,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.tsv").write_text("a\tb\nc\td\n", encoding="utf-8")
    (tmp_path / "ragged.tsv").write_text("latin\tb\nc\td\ne\n", encoding="utf-8")
    (tmp_path / "twice.csv").write_text("latin,latin\na,b\n", encoding="utf-8")
    code, out, err = call(capsys, *[exported(NAME) if part == "MODEL" else part for part in arguments])
    assert code == 2
    assert not out
    assert any(part in err for part in named.split("|"))
    assert "Traceback" not in err
