"""Cross-validation: what is left out is not trained on, figures are those of the predictions, nothing is done twice."""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

import seq2see
from seq2see.errors import UserError
from seq2see.evaluation import compute
from seq2see.evaluation.cross_validation import CrossValidation
from seq2see.evaluation.ranking import Contender, GroupOutcome, Outcome, Ranking, student_quantile
from seq2see.recipe import load_recipe
from seq2see.training import comparing
from seq2see.training.comparing import CROSSVAL, RESULTS
from seq2see.training.dataset import open_table
from seq2see.training.folds import LEFT_OUT, read_folds
from tests.system.small import RecordingListener, write_table
from tests.training import tiny

SPEAKERS = ("anna", "ben", "cleo")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of two or three letters, of which each speaker has others but for a few."""
    draw = random.Random(4)
    rows = []
    for number in range(66):
        word = "".join(draw.choices("abcd", k=draw.randint(2, 3)))
        rows.append({"source": word, "output": word, "speaker": SPEAKERS[number * number % 3]})
    rows += [{**row, "speaker": "cleo"} for row in rows[:20]]
    return write_table(tmp_path_factory.mktemp("crossval") / "words.csv", rows)


def crossval(data: Any, out: Path, **given: Any) -> tuple[CrossValidation, list[str]]:
    told = RecordingListener()
    given = {"by": "speaker", "updates": 2, **given}
    return seq2see.crossval(tiny.ROWS, data, out=out, listeners=[told], **given), told.notes


@pytest.fixture(scope="module")
def held(data: Path, tmp_path_factory: pytest.TempPathFactory) -> CrossValidation:
    return crossval(data, tmp_path_factory.mktemp("held"))[0]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_no_row_of_the_tested_group_is_trained_on_or_selected_by(held: CrossValidation, data: Path) -> None:
    tested = []
    for outcome in held.runs.outcomes:
        sources = json.loads((Path(outcome.model) / "data.json").read_text("utf-8"))
        train, dev = read(Path(sources["data"])), read(Path(sources["dev"]))
        test = read(Path(sources["data"]).with_name("test.jsonl"))
        assert {row["speaker"] for row in test} == {outcome.fold} == set(outcome.groups)
        assert outcome.fold not in {row["speaker"] for row in [*train, *dev]}
        assert len(train) + len(dev) + len(test) == 86
        assert dev
        assert seq2see.load(outcome.model).seen(train).trained_on == len(train)
        tested += test
    assert len(tested) == 86


def test_the_figures_are_those_of_the_predictions(held: CrossValidation) -> None:
    """Metrics of groups and of all rows, by hand from what the models wrote; and what the models themselves say."""
    written: dict[str, list[dict[str, Any]]] = {}
    scored: dict[str, list[dict[str, Any]]] = {}
    for outcome in held.runs.outcomes:
        for record in read(Path(outcome.model) / LEFT_OUT):
            side = scored if record["metrics"] == ["perplexity"] else written
            side.setdefault(record["group"], []).append(record)
        model = seq2see.load(outcome.model)
        report = model.evaluate(
            Path(json.loads((Path(outcome.model) / "data.json").read_text())["data"]).with_name("test.jsonl")
        )
        assert report.metrics == pytest.approx(outcome.metrics)
        some = written[outcome.fold][:5]
        assert [one.text for one in model.predict([record["inputs"] for record in some])] == [
            record["predictions"] for record in some
        ]

    def cer(records: list[dict[str, Any]]) -> float:
        predictions, references = [one["predictions"] for one in records], [one["references"] for one in records]
        return compute(["cer"], predictions, references, unit="character")["cer"]

    values = {group: cer(records) for group, records in written.items()}
    assert held.values("cer") == pytest.approx(values)
    assert held.mean() == pytest.approx(fmean(values.values()))
    assert held.pooled["cer"] == pytest.approx(cer([one for records in written.values() for one in records]))
    symbols = sum(len(one["targets"]) for records in scored.values() for one in records)
    total = sum(one["log_probabilities"] for records in scored.values() for one in records)
    assert held.pooled["perplexity"] == pytest.approx(2.718281828459045 ** (-total / symbols))
    assert {group: len(records) for group, records in scored.items()} == {name: held.rows(name) for name in SPEAKERS}
    interval = held.interval()
    assert interval is not None
    reach = 4.302652729696142 * stdev(values.values()) / 3**0.5  # the 0.975 quantile of t with 2 degrees of freedom
    assert (interval.high - interval.value, interval.value - interval.low) == pytest.approx((reach, reach))
    assert student_quantile(0.975, 2) == pytest.approx(4.302652729696142)
    assert held.trained_inputs == sum(
        group.trained_inputs for run in held.runs.outcomes for group in run.groups.values()
    )
    assert held.trained_inputs > 0


def test_finished_folds_are_not_trained_again(
    held: CrossValidation, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(held.folder)
    monkeypatch.setattr(comparing, "train", None)
    again, notes = crossval(data, folder)
    assert again == held
    assert len([note for note in notes if note.endswith("(trained before)")]) == 3
    record = json.loads((folder / CROSSVAL).read_text("utf-8"))
    assert [group["group"] for group in record["groups"]] == ["anna", "ben", "cleo"]
    assert record["mean"]["cer"] == held.mean()
    assert record["pooled"] == held.pooled
    lines = (folder / RESULTS).read_text("utf-8").splitlines(keepends=True)
    (folder / RESULTS).write_text("".join(lines[:2]), "utf-8")
    with pytest.raises(TypeError):  # the third has to be trained
        crossval(data, folder)
    monkeypatch.undo()
    assert crossval(data, folder)[0].values("cer") == held.values("cer")


def test_the_same_call_goes_on_from_another_directory(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    first, _ = crossval(data, Path("out"), folds=2, updates=1)
    monkeypatch.chdir(tmp_path / "inner")
    monkeypatch.setattr(comparing, "train", None)
    again, _ = crossval(data, Path("../out"), folds=2, updates=1)
    assert again.pooled == first.pooled
    assert all(Path(outcome.model).is_dir() for outcome in again.runs.outcomes)


def test_several_groups_share_a_fold_and_are_measured_apart(data: Path, tmp_path: Path) -> None:
    result, notes = crossval(data, tmp_path, folds=2, seeds=2)
    assert len(result.runs.outcomes) == 4
    assert set(result.runs.groups) == set(SPEAKERS)
    assert sum(result.rows(name) for name in SPEAKERS) == 86
    assert any("2 folds of 3 values of 'speaker'" in note for note in notes)
    shared = next(outcome for outcome in result.runs.outcomes if len(outcome.groups) == 2)
    assert shared.fold.startswith("fold ")
    one, two = (run.groups["anna"].metrics["cer"] for run in result.runs.outcomes if "anna" in run.groups)
    assert result.values("cer")["anna"] == pytest.approx((one + two) / 2)
    text = result.text()
    assert all(name in text for name in (*SPEAKERS, "mean", "95 % interval", "all rows", "86"))
    assert result._repr_html_().startswith("<table")


def test_folds_of_rows_from_memory(tmp_path: Path) -> None:
    rows = [{"source": word, "output": word} for word in ["ab", "ba", "aab", "abb", "bba", "bab", "aa", "bb"] * 3]
    result, _ = crossval(rows, tmp_path, by=None, folds=2, updates=1)
    assert result.by == ""
    assert result.runs.groups == ("fold 1", "fold 2")
    assert [result.rows(name) for name in result.runs.groups] == [12, 12]
    assert result.trained_inputs == 0


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_tables_of_folds_have_every_character_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    rows = [
        {"source": f"\u010d{'ab' * (number % 4)}", "output": "\u4e00", "who": "xyz"[number % 3]} for number in range(24)
    ]
    table = tmp_path / "words.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding)
    recipe = load_recipe(tiny.ROWS, overrides=[f"data.encoding={encoding}"])
    folds = read_folds(recipe, table, None, by="who", dev_from="rows", folder=tmp_path)
    folds.write()
    first = folds.parts[0]
    assert first.sources.dev is not None
    parts = [Path(first.sources.data), Path(first.sources.dev), first.test]
    written = [row for path in parts for row in map(json.loads, path.read_text(encoding).splitlines())]
    assert sorted(map(str, written)) == sorted(map(str, rows))
    joined = tmp_path / "joined.jsonl"
    joined.write_bytes(folds.content(*parts))
    assert len(list(open_table(recipe, joined, None)[0])) == 24


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "speeker"}, "--by speeker: no column 'speeker' .did you mean 'speaker'"),
        ({"folds": 4}, "folds 4: allowed: 2 to 3"),
        ({"seeds": 0}, "seeds: 0 given"),
        ({"by": None, "dev_from": "rows"}, "dev from rows"),
    ],
)
def test_what_makes_no_sense_is_refused(data: Path, tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        crossval(data, tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_rows_without_a_group_and_streams_are_refused(tmp_path: Path) -> None:
    rows = [{"source": "ab", "output": "ab", "speaker": "" if number == 4 else "x"} for number in range(9)]
    with pytest.raises(UserError, match="row 5, column 'speaker': '' names no group"):
        crossval(rows, tmp_path / "out")
    with pytest.raises(UserError, match="contiguous text"):
        seq2see.crossval(tiny.TEXT, tiny.text(tmp_path / "text.txt"), out=tmp_path / "out", updates=1, listeners=[])


def test_teachers_are_refused_as_they_may_know_what_is_left_out(data: Path, tmp_path: Path) -> None:
    teachers = "loss.distillation.teachers"
    with pytest.raises(UserError, match=teachers):
        crossval(data, tmp_path / "out", overrides=[f"{teachers}=[model]"])
    for values in ("[model]", "[],[model]"):
        vary = [f"{teachers}={values}"]
        with pytest.raises(UserError, match=teachers):
            seq2see.compare(tiny.ROWS, data, vary=vary, by="speaker", updates=1, out=tmp_path / "out", listeners=[])
    assert not (tmp_path / "out").exists()


def test_there_are_at_most_a_hundred_folds(tmp_path: Path) -> None:
    rows = [{"source": f"{number:03}", "output": "a"} for number in range(102)]
    with pytest.raises(UserError, match="folds 101: allowed: 2 to 100"):
        crossval(rows, tmp_path / "out", by=None, folds=101)


def test_a_metric_is_computed_once_for_all_groups(held: CrossValidation, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    compute_values = CrossValidation.values

    def values(self: CrossValidation, metric: str) -> dict[str, float]:
        asked.append(metric)
        return compute_values(self, metric)

    monkeypatch.setattr(CrossValidation, "values", values)
    held.to_dict()
    assert sorted(asked) == sorted(held.metrics)
    asked.clear()
    held.text()
    assert sorted(asked) == sorted(held.metrics)


@pytest.mark.parametrize(("dev_from", "said"), [("group", "another value"), ("rows", "rows set aside")])
def test_the_note_says_where_dev_rows_come_from(data: Path, tmp_path: Path, dev_from: Any, said: str) -> None:
    folds = read_folds(load_recipe(tiny.ROWS), data, None, by="speaker", dev_from=dev_from, folder=tmp_path)
    assert said in folds.notes[-1]


# ---------------------------------------------------------------- compare by groups


def contender(name: str, values: dict[str, float]) -> Contender:
    outcomes = [
        Outcome(1, {"exact": value}, 5, 1.0, 0.1, 10, "", group, {group: GroupOutcome(7, {"exact": value}, {})})
        for group, value in values.items()
    ]
    return Contender(name, {"key": name}, tuple(outcomes))


def test_variants_are_compared_group_by_group() -> None:
    """Groups differ more than variants do: intervals overlap, and yet one variant is better in every group."""
    first = contender("first", {"a": 0.95, "b": 0.75, "c": 0.55, "d": 0.36})
    second = contender("second", {"a": 0.90, "b": 0.70, "c": 0.50, "d": 0.30})
    third = contender("third", {"a": 0.96, "b": 0.60, "c": 0.58, "d": 0.33})
    ranking = Ranking("exact", (first, second, third), by="speaker")
    assert ranking.best is first
    one, two = first.interval("exact"), second.interval("exact")
    assert one is not None
    assert two is not None
    assert one.low < two.high
    assert ranking.rivals == (third,)
    assert ranking.to_dicts()[0]["groups"] == ["a", "b", "c", "d"]


def test_compare_measures_variants_on_left_out_groups(held: CrossValidation, data: Path, tmp_path: Path) -> None:
    vary = ["attention.score=dot,none"]
    given: dict[str, Any] = {"by": "speaker", "updates": 2, "out": tmp_path, "listeners": []}
    ranking = seq2see.compare(tiny.ROWS, data, vary=vary, **given)
    assert [one.groups for one in ranking.contenders] == [("anna", "ben", "cleo")] * 2
    assert ranking.contenders[0].values("cer") == pytest.approx(list(held.values("cer").values()))
    assert "speaker" in ranking.text()
    assert all(path.stat().st_size for path in comparing.draw(ranking, title="words"))
    with pytest.raises(UserError, match="dev"):
        seq2see.compare(tiny.ROWS, data, dev=data, vary=vary, **{**given, "out": tmp_path / "other"})
    with pytest.raises(UserError, match="has no effect without"):
        seq2see.compare(tiny.ROWS, data, vary=vary, dev_from="rows", out=tmp_path / "other", listeners=[])
