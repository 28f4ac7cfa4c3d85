"""The unigram model beside a run: it counts what the run is taught to write, no more and no less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seq2see.evaluation import Unigram
from seq2see.evaluation.baselines import Nearest
from seq2see.recipe import load_recipe
from seq2see.training.dataset import Corpus, read_corpus
from tests.system.small import write_table

PAIRS = [("a a a x", "a b b"), ("x x", "b c"), ("c", "a b d")]


def counts(corpus: Corpus) -> dict[str, int]:
    [unigram] = [model for model in corpus.baselines if isinstance(model, Unigram)]
    return {symbol: count for symbol, count in unigram.counts.items() if count}


def read(tmp_path: Path, **parts: Any) -> Corpus:
    table = write_table(tmp_path / "pairs.tsv", [{"source": given, "output": wanted} for given, wanted in PAIRS])
    recipe = load_recipe({"inputs": {"source": {}}, **parts})
    return read_corpus(recipe, table, dev=table)


def test_rare_symbols_are_counted_as_unknown(tmp_path: Path) -> None:
    corpus = read(tmp_path, output={"min_count": 2})
    assert counts(corpus) == {"a": 2, "b": 4, "<unk>": 2, "<eos>": 3}


def test_symbols_of_the_input_are_not_counted_where_it_shares_its_vocabulary(tmp_path: Path) -> None:
    corpus = read(tmp_path, output={"share": "source"})
    assert counts(corpus) == {"a": 2, "b": 4, "c": 1, "d": 1, "<eos>": 3}
    assert "x" in corpus.fields.output.vocabulary


def test_probabilities_of_all_that_can_be_written_sum_to_one(tmp_path: Path) -> None:
    corpus = read(tmp_path, output={"share": "source"})
    [unigram] = [model for model in corpus.baselines if isinstance(model, Unigram)]
    written = [symbol for symbol in corpus.fields.output.vocabulary.symbols if symbol not in ("<pad>", "<sos>")]
    assert sum(1 / unigram.perplexity([[symbol]]) for symbol in written) == pytest.approx(1.0)


def test_further_baselines_are_fitted_after_the_first(tmp_path: Path) -> None:
    wanted = {"baseline": "copy", "further_baselines": ["nearest", "frequent"]}
    names = [baseline.name for baseline in read(tmp_path, evaluation=wanted).baselines]
    assert names == ["copy", "nearest", "frequent", "unigram"]
    nearest = read(tmp_path, evaluation=wanted).baselines[1]
    assert isinstance(nearest, Nearest)
    assert sorted(zip(nearest.texts, nearest.answers, strict=True)) == sorted(PAIRS)


def test_where_no_rows_may_be_kept_none_are(tmp_path: Path) -> None:
    wanted = {"baseline": "nearest", "further_baselines": ["frequent"]}
    corpus = read(tmp_path, evaluation=wanted, training={"samples": 0})
    assert [baseline.name for baseline in corpus.baselines] == ["frequent", "unigram"]


def test_a_stream_is_counted_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("aab\nacab\n", encoding="utf-8")
    recipe = load_recipe(
        {"output": {"tokens": "character", "column": "text", "min_count": 2}, "data": {"stream": True}}
    )
    assert counts(read_corpus(recipe, path, dev=path)) == {"a": 4, "b": 2, "\n": 2, "<unk>": 1}
