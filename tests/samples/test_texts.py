"""Texts made by rules: tables that their recipes read, the same for the same seed, with answers that are right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from seq2see.data.tables import read
from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.samples import SAMPLES
from seq2see.training.dataset import wanted_columns
from tests.samples.test_samples import called

MADE = ("facts", "people", "pairs", "sentences", "reports", "sets")
FEW = {"train": 60, "dev": 12}


def rows_of(path: Path) -> list[Mapping[str, str]]:
    return [row.values for row in read(path)]


def made(folder: Path, name: str, **options: object) -> dict[str, list[Mapping[str, str]]]:
    given = {"rows": FEW} if "rows" in SAMPLES[name].options else {}
    SAMPLES[name].write(folder, **given, **options)
    return {part: rows_of(folder / f"{part}.tsv") for part in ("train", "dev")}


@pytest.mark.parametrize("name", MADE)
def test_a_sample_is_a_table_for_its_recipes(tmp_path: Path, name: str) -> None:
    first, again, other = (made(tmp_path / str(number), name, seed=seed) for number, seed in enumerate((1, 1, 2)))
    assert first == again != other
    for recipe in SAMPLES[name].recipes:
        assert {column for _, column in wanted_columns(load_recipe(recipe))} <= set(first["train"][0])
    kept_apart = [tuple(row.values()) for row in first["dev"]]
    assert len({tuple(row.values()) for row in first["train"]} & set(kept_apart)) < len(kept_apart) / 4


@pytest.mark.parametrize("name", MADE)
def test_the_number_of_rows_is_as_stated(tmp_path: Path, name: str) -> None:
    assert f"{sum(SAMPLES[name].write(tmp_path).values()):,}" in SAMPLES[name].about


def test_the_fact_asked_for_is_in_the_passage(tmp_path: Path) -> None:
    for row in made(tmp_path, "facts", facts=5)["train"]:
        facts = {sentence.split()[0]: sentence.split()[-1] for sentence in row["passage"].split(" .") if sentence}
        assert len(facts) == len(set(facts.values())) == 5
        assert facts[row["question"].split()[2]] == row["answer"]
    with pytest.raises(UserError, match="--facts 13"):
        made(tmp_path, "facts", facts=13)


def test_what_dev_asks_was_told_in_train_in_other_words(tmp_path: Path) -> None:
    parts = made(tmp_path, "people")
    known = defaultdict(set)
    for row in parts["train"]:
        known[row["answer"]] |= set(row["question"].split())
    names = [
        word
        for row in parts["dev"]
        for word in row["question"].split()
        if len(word) == 6 and word in known[row["answer"]]
    ]
    assert len(names) >= len(parts["dev"])
    assert not {row["question"] for row in parts["train"]} & {row["question"] for row in parts["dev"]}


def test_labels_of_pairs_are_not_told_by_their_words_in_common(tmp_path: Path) -> None:
    SAMPLES["pairs"].write(tmp_path, rows={"train": 600, "dev": 1})
    shared = defaultdict(list)
    for row in rows_of(tmp_path / "train.tsv"):
        premise, hypothesis = (set(row[column].split()) for column in ("premise", "hypothesis"))
        shared[row["label"]].append(len(premise & hypothesis) / len(premise))
    means = {label: sum(values) / len(values) for label, values in shared.items()}
    assert set(means) == {"entailment", "contradiction", "neutral"}
    assert max(means.values()) - min(means.values()) < 0.2


def test_no_sentence_of_a_report_holds_its_title(tmp_path: Path) -> None:
    for row in made(tmp_path, "reports")["train"]:
        winner, _, loser, _, town, *_, scorer = row["title"].split()
        document = row["abstract"].lower()
        assert all(name in document for name in (winner, loser, town, scorer))
        assert not any(town in sentence and scorer in sentence for sentence in document.split("."))


def test_sets_are_sorted(tmp_path: Path) -> None:
    for row in made(tmp_path, "sets")["train"]:
        assert sorted(map(int, row["items"].split())) == [int(item) for item in row["sorted"].split()]


def test_options_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("sample", "facts", "--out", tmp_path, "--rows", 7, "--seed", 3, "--facts", 2) == 0
    rows = rows_of(tmp_path / "train.tsv")
    assert len(rows) == 7
    assert {row["passage"].count(" .") for row in rows} == {2}
    for wrong, name in (
        (("sets", "--facts", "2"), "--facts"),
        (("digits", "--rows", "5"), "--rows"),
        (("sets", "--rows", "0"), "--rows"),
    ):
        capsys.readouterr()
        assert called("sample", *wrong, "--out", tmp_path / "other") == 2
        assert name in capsys.readouterr().err
