"""Inputs from everywhere, outputs in every form, all the same predictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import seq2see
from seq2see.cli import inputs
from seq2see.errors import UserError
from tests.commands import Run
from tests.record.record import differences

Call = Callable[..., Run]


def rows_of(path: Path) -> list[dict[str, str]]:
    head, *lines = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_arguments_lines_and_tables_agree(
    call: Call, stdin: Callable[[str], None], speller: Path, tmp_path: Path
) -> None:
    words = ["abcd", "feed", "dad"]
    model = seq2see.load(speller)
    expected = [model.predict(word, beam=2).text for word in words]
    assert call("predict", speller, "--beam", 2, *words).lines == expected
    assert call("predict", speller, *words, "--beam", 2).lines == expected
    stdin("abcd\nfeed\ndad\n")
    assert call("predict", speller, "--beam", 2).lines == expected
    (tmp_path / "in.txt").write_text("abcd\nfeed\ndad\n")
    assert call("predict", speller, "--beam", 2, "--file", tmp_path / "in.txt").lines == expected
    (tmp_path / "in.csv").write_text("id,term\n1,abcd\n2,feed\n3,dad\n")
    run = call("predict", speller, "--beam", 2, "--file", tmp_path / "in.csv", "--columns", "term")
    assert run.lines == expected


def test_an_empty_line_keeps_its_place(call: Call, stdin: Callable[[str], None], speller: Path) -> None:
    stdin("abcd\n\nfeed\n")
    lines = call("predict", speller).lines
    assert len(lines) == 3
    assert [lines[0], lines[2]] == call("predict", speller, "abcd", "feed").lines


def test_json_is_the_contract(call: Call, speller: Path) -> None:
    run = call("predict", speller, "abcd", "--json", "--n-best", 2, "--looks", "-")
    record = json.loads(run.out)
    assert list(record) == ["input", "text", "log_probability", "score", "tokens", "alternatives", "looks"]
    prediction = seq2see.load(speller).predict("abcd", n_best=2)
    wanted = json.loads(json.dumps(prediction.to_dict(looks=True)))
    assert list(differences(wanted, record)) == []  # with maps a search goes another way to the same numbers
    assert len(record["alternatives"]) == 1
    assert record["looks"]["inputs"] == list("abcd")
    assert record["looks"]["outputs"][-1] == "<eos>"
    assert "looks" not in json.loads(call("predict", speller, "abcd", "--json").out)


def test_n_best_has_a_line_each(call: Call, speller: Path) -> None:
    lines = [line.split("\t") for line in call("predict", speller, "abcd", "--n-best", 3).lines]
    prediction = seq2see.load(speller).predict("abcd", n_best=3)
    assert [text for _, text in lines] == [prediction.text, *(other.text for other in prediction.alternatives)]
    assert [float(score) for score, _ in lines] == sorted((float(score) for score, _ in lines), reverse=True)


def test_an_n_best_list_says_what_its_numbers_are(call: Call, speller: Path, judge: Path) -> None:
    assert "score = log-probability / length" in call("predict", speller, "abcd", "--n-best", 3).err
    assert "score (log-probability)" in call("predict", judge, "ab\tba", "--n-best", 2).err
    assert call("predict", speller, "abcd").err == ""
    assert call("predict", speller, "abcd", "--n-best", 3, "--json").err == ""


def test_the_table_is_written_back(call: Call, speller: Path, pairs: Path, tmp_path: Path) -> None:
    run = call("predict", speller, "--file", pairs, "--to", tmp_path / "out.tsv")
    assert (run.code, run.out) == (0, "")
    written, read = rows_of(tmp_path / "out.tsv"), rows_of(pairs)
    assert [{name: row[name] for name in ("word", "spelled")} for row in written] == read
    model = seq2see.load(speller)
    found = model.predict([row["word"] for row in read])
    assert [row["prediction"] for row in written] == [one.text for one in found]
    assert [float(row["score"]) for row in written] == pytest.approx([one.score for one in found])


def test_a_table_longer_than_a_chunk(
    call: Call, monkeypatch: pytest.MonkeyPatch, speller: Path, pairs: Path, tmp_path: Path
) -> None:
    call("predict", speller, "--file", pairs, "--to", tmp_path / "whole.tsv")
    monkeypatch.setattr("seq2see.cli.inputs.chunked.__defaults__", (64,))
    call("predict", speller, "--file", pairs, "--to", tmp_path / "parts.tsv")
    whole, parts = rows_of(tmp_path / "whole.tsv"), rows_of(tmp_path / "parts.tsv")
    assert [row["prediction"] for row in parts] == [row["prediction"] for row in whole]
    assert len(parts) == 200


def test_a_failure_leaves_the_old_table(call: Call, speller: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"word": "abcd"}\n{"word": 5.5}\n{"word": null}\n')
    (tmp_path / "out.tsv").write_text("mine\n")
    run = call("predict", speller, "--file", tmp_path / "in.jsonl", "--to", tmp_path / "out.tsv")
    assert run.code == 2
    assert "line 3" in run.err
    assert (tmp_path / "out.tsv").read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.tsv"]


def test_looks_go_where_the_path_says(call: Call, speller: Path, tmp_path: Path) -> None:
    call("predict", speller, "abcd", "fa/de", "--looks", tmp_path / "pictures")
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["00001-abcd.png", "00002-fa-de.png"]
    call("predict", speller, "abcd", "feed", "--looks", tmp_path / "looks.jsonl")
    records = [json.loads(line) for line in (tmp_path / "looks.jsonl").read_text().splitlines()]
    assert [record["inputs"] for record in records] == [list("abcd"), list("feed")]
    call("predict", speller, "abcd", "--looks", tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text().lstrip().startswith("<?xml")


def test_what_is_drawn_for_a_row_does_not_depend_on_the_chunk_it_is_in(
    call: Call, speller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "same.tsv"
    table.write_text("word\n" + "abcd\n" * 6, encoding="utf-8")
    arguments = ["predict", speller, "--file", table, "--sample", "--temperature", 5, "--seed"]
    whole = {seed: call(*arguments, seed).lines for seed in (0, 1)}
    assert len(set(whole[0])) > 1
    assert whole[0] != whole[1]
    monkeypatch.setattr(inputs.chunked, "__defaults__", (2,))
    assert {seed: call(*arguments, seed).lines for seed in (0, 1)} == whole


def test_sampling_repeats_with_its_seed(call: Call, speller: Path) -> None:
    drawn = [call("predict", speller, "abcd", "--sample", "--n-best", 5, "--seed", seed).out for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_options_of_the_search_reach_it(call: Call, speller: Path) -> None:
    assert call("predict", speller, "abcd", "--max-length", 2).out.count(" ") == 1
    assert call("predict", speller, "abcd", "--prefix", "F F").out.startswith("F F")
    assert len(call("predict", speller, "abcd", "--min-length", 9).out.split()) >= 9


def test_several_inputs_have_tabs_between_them(call: Call, judge: Path, verdicts: Path) -> None:
    run = call("predict", judge, "ab\tba", "--json", "--looks", "-")
    record = json.loads(run.out)
    assert record["input"] == {"first": "ab", "second": "ba"}
    assert record["label"] in ("alike", "different")
    assert record["looks"]["inputs"] == ["b", "a"]
    rows = rows_of(verdicts)
    lines = call("predict", judge, "--file", verdicts).lines
    model = seq2see.load(judge)
    assert lines == [one.label for one in model.predict([(row["first"], row["second"]) for row in rows])]


def test_a_language_model_needs_no_input(call: Call, babbler: Path) -> None:
    run = call("predict", babbler, "--n-best", 3, "--seed", 4)
    assert (run.code, len(run.lines)) == (0, 3)
    assert run.out == call("predict", babbler, "--n-best", 3, "--seed", 4).out
    assert call("predict", babbler, "--prefix", "ab").out.startswith("ab")


def test_an_ensemble_of_one_model_twice_is_that_model(call: Call, speller: Path) -> None:
    models = (speller, f"{speller}+{speller}")
    alone, twice = (json.loads(call("predict", which, "abcd", "--json").out) for which in models)
    assert twice["text"] == alone["text"]
    assert twice["log_probability"] == pytest.approx(alone["log_probability"], abs=1e-5)


def test_a_table_keeps_its_dialect(call: Call, speller: Path, tmp_path: Path) -> None:
    """The spreadsheet that wrote semicolons and a byte order mark can open the answers too."""
    table = tmp_path / "in.csv"
    table.write_text("word;weight\nabcd;1,5\nfeed;2,5\n", encoding="utf-8-sig", newline="\r\n")
    assert call("predict", speller, "--file", table, "--to", tmp_path / "out.csv").code == 0
    content = (tmp_path / "out.csv").read_text("utf-8")
    assert (tmp_path / "out.csv").read_bytes().count(b"\r\n") == 3
    header, first, _ = content.splitlines()
    assert header == "\ufeffword;weight;prediction;score"
    word, weight, _, score = first.split(";")
    assert (word, weight) == ("abcd", "1,5")
    assert float(score.replace(",", ".")) < 0
    assert "." not in score
    assert call("predict", speller, "--file", tmp_path / "out.csv", "--to", tmp_path / "again.tsv").code == 0
    assert rows_of(tmp_path / "again.tsv")[0]["weight"] == "1,5"
    plain = tmp_path / "plain.csv"
    plain.write_text("word,weight\nabcd,1.5\n")
    assert call("predict", speller, "--file", plain, "--to", tmp_path / "out.csv").code == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "word,weight,prediction,score"


def test_python_takes_rows_with_their_outputs(speller: Path) -> None:
    model = seq2see.load(speller)
    (column,) = [settings.column for settings in model.recipe.inputs.values()]
    row = {column or "source": "abcd", model.recipe.output.column: "ABCD"}
    assert model.predict([row])[0].text == model.predict("abcd").text == model.predict(row).text
    with pytest.raises(UserError, match=r"unknown option 'beams' \(did you mean 'beam'\?\)"):
        model.predict("abcd", beams=3)
    assert repr(model.predict("abcd")).startswith("Prediction('")


def test_another_model_is_not_overwritten(speller: Path, judge: Path, tmp_path: Path) -> None:
    model, other = seq2see.load(speller), seq2see.load(judge)
    model.save(tmp_path / "model")
    with pytest.raises(UserError, match="already holds a model"):
        other.save(tmp_path / "model")
    assert seq2see.load(tmp_path / "model").recipe.task == model.recipe.task
    seq2see.load(tmp_path / "model").save(tmp_path / "model")
    other.save(tmp_path / "model", overwrite=True)
    assert seq2see.load(tmp_path / "model").recipe.task == other.recipe.task


def test_listeners_are_checked_before_a_training(speller: Path, tmp_path: Path) -> None:
    class Half:
        def on_update(self, status: object) -> None: ...

    for wrong in (Half(), Half):
        with pytest.raises(UserError, match=r"listeners: .* has no on_report"):
            seq2see.train(seq2see.load(speller).recipe, [], out=tmp_path / "run", listeners=[wrong])  # type: ignore[list-item]
