from __future__ import annotations

import random

import pytest

from seq2see.errors import UserError
from seq2see.evaluation import (
    METRICS,
    Rows,
    check,
    compute,
    default_metrics,
    higher_is_better,
    lookup,
    measure,
)

OF_OUTPUTS = [name for name in METRICS if METRICS[name].outputs_only]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_nothing(corpus: Rows, seed: int) -> None:
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)
    assert measure(OF_OUTPUTS, corpus.select(order)) == pytest.approx(measure(OF_OUTPUTS, corpus))


def test_the_order_of_references_changes_nothing(corpus: Rows) -> None:
    names = [name for name in OF_OUTPUTS if name != "macro_f1"]  # its true label is the first reference
    turned = Rows(corpus.predictions, [texts[::-1] for texts in corpus.references], inputs=corpus.inputs)
    assert measure(names, turned) == pytest.approx(measure(names, corpus))


@pytest.mark.parametrize("name", OF_OUTPUTS)
def test_every_metric_tells_right_from_wrong(corpus: Rows, name: str) -> None:
    """The references themselves are better, in the metric's own direction, than words never seen."""
    copies = Rows([texts[0] for texts in corpus.references], corpus.references, inputs=corpus.predictions)
    wrong = copies.with_predictions(["zzz zzz zzz"] * len(corpus))
    right, other = measure([name], copies)[name], measure([name], wrong)[name]
    assert right > other if higher_is_better(name) else right < other
    best = lookup(name).top if higher_is_better(name) else 0.0
    if name not in ("cider", "recall", "distinct1", "distinct2"):
        assert right == pytest.approx(best)


def test_no_rows() -> None:
    with pytest.raises(UserError, match="no rows"):
        compute(["exact"], [], [])


def test_a_row_without_reference_is_named() -> None:
    with pytest.raises(UserError, match="row 2 has no reference"):
        compute(["exact"], ["a", "b"], [["a"], []])


@pytest.mark.parametrize("given", [{"references": [["a"]]}, {"references": [["a"]] * 2, "inputs": ["a"]}])
def test_lists_of_unlike_length_are_refused(given: dict[str, list[object]]) -> None:
    with pytest.raises(ValueError, match="2 predictions, but 1"):
        compute(["exact"], ["a", "b"], **given)


@pytest.mark.parametrize(("name", "near"), [("blue", "bleu"), ("rouge-l", "rougeL"), ("accurracy", "accuracy")])
def test_unknown_names_are_answered_with_the_nearest_and_the_allowed(name: str, near: str) -> None:
    with pytest.raises(
        UserError, match=rf"unknown metric '{name}' \(did you mean '{near}'\?\); allowed: .*chrf, .*exact, "
    ):
        compute([name], ["a"], [["a"]])


def test_the_allowed_tell_of_the_forms_that_names_of_texts_have() -> None:
    with pytest.raises(UserError, match=r"unknown metric 'wrong'.*_lc .*_plain .*as in bleu_plain"):
        lookup("wrong")
    with pytest.raises(UserError, match=r"not for outputs of type 'label'; allowed: [^;]*accuracy[^;]*$"):
        check(["bleu"], "label")
    with pytest.raises(UserError, match=r"not for outputs of type 'text'; allowed: .*bleu_plain"):
        check(["accuracy"], "text")


@pytest.mark.parametrize("name", ["accuracy_lc", "perplexity_lc"])
def test_case_is_left_out_of_text_only(name: str) -> None:
    with pytest.raises(UserError, match=f"unknown metric '{name}'"):
        lookup(name)


def test_other_answers_do_not_keep_what_belonged_to_the_old_ones() -> None:
    rows = Rows(["a"], [["a"]], inputs=["i"], alternatives=[["a"]], targets=[["a"]], log_probabilities=[-1.0])
    other = rows.with_predictions(["b"])
    assert (other.predictions, other.alternatives, other.log_probabilities) == (["b"], None, None)
    assert (other.references, other.inputs, other.targets) == (rows.references, rows.inputs, rows.targets)


def test_directions() -> None:
    lower = [name for name in METRICS if not METRICS[name].higher_is_better]
    assert sorted(lower) == ["aer", "cer", "mae", "mse", "perplexity", "wer"]
    assert higher_is_better("bleu_lc")
    assert not higher_is_better("wer_lc")
    assert higher_is_better("exact@5")


def test_metrics_fit_the_kind_of_output() -> None:
    check(["bleu", "perplexity", "exact@3"], "text")
    check(["accuracy", "macro_f1", "perplexity"], "label")
    with pytest.raises(UserError, match="'bleu' is not for outputs of type 'label'; allowed: accuracy, macro_f1"):
        check(["accuracy", "bleu"], "label")
    with pytest.raises(UserError, match="'accuracy' is not for outputs of type 'text'"):
        check(["accuracy"], "text")
    with pytest.raises(UserError, match="'bleu' is asked for twice"):
        check(["bleu", "chrf", "bleu"], "text")


def test_defaults() -> None:
    assert default_metrics("text", "character") == default_metrics("text", "symbol") == ["exact", "cer"]
    assert default_metrics("text", "word") == default_metrics("text", "bpe") == ["bleu", "chrf"]
    assert default_metrics("label") == ["accuracy", "macro_f1"]
    assert default_metrics("text", "character", inputs=False) == ["perplexity"]


def test_values_are_shown_by_their_scale() -> None:
    assert lookup("exact").show(0.61234) == "0.6123"
    assert lookup("bleu").show(35.128) == "35.13"
    assert lookup("perplexity").show(12.345) == "12.35"
