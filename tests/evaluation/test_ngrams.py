from __future__ import annotations

from dataclasses import replace

import pytest
import sacrebleu

from seq2see.evaluation import Rows, compute, measure


def streams(rows: Rows) -> list[list[str | None]]:
    """References as sacrebleu wants them: one list per reference number, None where a row has no such one."""
    most = max(len(texts) for texts in rows.references)
    return [[texts[i] if i < len(texts) else None for texts in rows.references] for i in range(most)]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_bleu_is_sacrebleu_with_unlike_numbers_of_references(corpus: Rows, order: int, lowercase: bool) -> None:
    expected = sacrebleu.BLEU(max_ngram_order=order, lowercase=lowercase).corpus_score(
        corpus.predictions, streams(corpus)
    )
    name = f"bleu{order}" + "_lc" * lowercase
    assert measure([name], corpus) == {name: pytest.approx(expected.score)}
    assert expected.score > 10


def test_bleu_is_what_sacrebleu_gives_by_default(corpus: Rows) -> None:
    references = [texts[0] for texts in corpus.references]
    expected = sacrebleu.corpus_bleu(corpus.predictions, [references]).score
    found = compute(["bleu", "bleu4"], corpus.predictions, [[text] for text in references])
    assert found == {"bleu": pytest.approx(expected), "bleu4": pytest.approx(expected)}


@pytest.mark.parametrize("lowercase", [False, True])
def test_chrf_is_sacrebleus(corpus: Rows, lowercase: bool) -> None:
    expected = sacrebleu.CHRF(lowercase=lowercase).corpus_score(corpus.predictions, streams(corpus)).score
    name = "chrf" + "_lc" * lowercase
    assert measure([name], corpus) == {name: pytest.approx(expected)}


@pytest.mark.parametrize("texts", [["a"], ["ab", "c"], ["हिन्दी", "x y"]])
def test_chrf_of_texts_shorter_than_its_orders(texts: list[str]) -> None:
    predictions = ["abcdefgh"] * len(texts)
    expected = sacrebleu.corpus_chrf(predictions, [texts]).score
    assert compute(["chrf"], predictions, [[text] for text in texts])["chrf"] == pytest.approx(expected)


def test_same_text_scores_hundred(corpus: Rows) -> None:
    right = replace(corpus, predictions=[texts[-1] for texts in corpus.references])
    assert measure(["bleu", "chrf", "bleu1"], right) == pytest.approx({"bleu": 100, "chrf": 100, "bleu1": 100})


def test_empty_predictions_and_references_score_nothing() -> None:
    assert compute(["bleu", "chrf"], ["", ""], [["a b c d"], ["e f g h"]]) == {"bleu": 0.0, "chrf": 0.0}
    assert compute(["bleu", "chrf"], ["a b c d"], [[""]]) == {"bleu": 0.0, "chrf": 0.0}
    assert compute(["bleu", "chrf"], [""], [[""]]) == {"bleu": 0.0, "chrf": 0.0}
