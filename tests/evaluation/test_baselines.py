from __future__ import annotations

import json
import math

import pytest

from seq2see.errors import UserError
from seq2see.evaluation import BASELINES, Rows, Unigram, baseline_from_dict, default_baseline, measure_baselines
from seq2see.evaluation.baselines import Copy, Frequent, Lead, Majority, Nearest, assign


def test_every_baseline_is_there() -> None:
    known = ["bag-of-words", "copy", "frequent", "last", "lead", "majority", "mean", "nearest", "unigram"]
    assert sorted(BASELINES) == known


def test_copy_lead_and_constants() -> None:
    documents = ["First one. Second.", "Only one"]
    assert Copy().predict(documents) == documents
    assert Lead().predict(documents) == ["First one.", "Only one"]
    assert Majority.fit(["b", "a", "b"]).predict(documents) == ["b", "b"]
    assert Frequent.fit(["i see", "no", "no"]).predict(documents) == ["no", "no"]


def test_of_equally_frequent_outputs_the_choice_does_not_depend_on_the_order() -> None:
    assert Majority.fit(["b", "a"]).output == Majority.fit(["a", "b"]).output == "a"


def test_a_constant_needs_training_outputs() -> None:
    with pytest.raises(UserError, match="'majority' needs training outputs"):
        Majority.fit([])


def test_copying_needs_an_input() -> None:
    with pytest.raises(UserError, match="'copy' needs inputs"):
        Copy().measure(["exact"], Rows(["a"], [["a"]]))


def test_a_baseline_is_judged_by_its_own_answers() -> None:
    rows = Rows(["x", "y"], [["a"], ["b"]], inputs=["a", "c"], alternatives=[["a"], ["b"]])
    assert Copy().measure(["exact", "exact@2", "perplexity"], rows) == {"exact": 0.5}
    assert Frequent("b").measure(["exact"], rows) == {"exact": 0.5}


def test_unigram_by_hand() -> None:
    model = Unigram.fit([["a", "a", "b", "<eos>"], ["a", "<eos>"]])
    # counts a 3, b 1, <eos> 2, <unk> 0, each one more: 10 in all
    expected = [math.log(4 / 10), math.log(3 / 10), math.log(1 / 10)]
    assert model.log_probability(["a", "<eos>", "never"]) == pytest.approx(sum(expected))
    assert model.perplexity([["a", "<eos>"], ["never"]]) == pytest.approx(math.exp(-sum(expected) / 3))


def test_unigram_is_a_distribution() -> None:
    model = Unigram.from_counts({"a": 7, "b": 2, "<unk>": 1}, sequences=4)
    assert sum(math.exp(model.log_probability([symbol])) for symbol in model.counts) == pytest.approx(1)
    assert set(model.counts) == {"a", "b", "<unk>", "<eos>"}
    assert model.log_probability(["<eos>"]) == pytest.approx(math.log(5 / 18))


def test_unigram_needs_targets() -> None:
    with pytest.raises(UserError, match="needs targets"):
        Unigram({"a": 1}).measure(["perplexity"], Rows(["a"], [["a"]]))


MODELS = [Copy(), Lead(), Majority("no"), Frequent("i see"), Unigram({"a": 3, "<eos>": 1}), Nearest(["a"], ["b"])]


@pytest.mark.parametrize("model", MODELS)
def test_baselines_survive_json(model: Copy) -> None:
    again = baseline_from_dict(json.loads(json.dumps(model.to_dict())))
    assert type(again) is type(model)
    assert again.to_dict() == model.to_dict()
    rows = Rows(["x"], [["a"]], inputs=["a. B."], targets=[["a", "<eos>"]])
    assert again.measure(["exact", "perplexity"], rows) == model.measure(["exact", "perplexity"], rows) != {}


@pytest.mark.parametrize("stored", [{"name": "majority"}, {"name": "copy", "output": "x"}])
def test_a_damaged_store_is_refused(stored: dict[str, str]) -> None:
    with pytest.raises(UserError, match=f"baseline '{stored['name']}' cannot be made"):
        baseline_from_dict(stored)


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown baseline 'coppy'.*did you mean 'copy'"):
        baseline_from_dict({"name": "coppy"})


def test_metrics_go_to_the_first_model_that_has_them() -> None:
    rows = Rows(["x"], [["a"]], inputs=["a"], targets=[["a"]], log_probabilities=[-9.0])
    copy, frequent, unigram = Copy(), Frequent("z"), Unigram({"a": 1})
    names = ["perplexity", "exact"]
    assert assign([copy, frequent, unigram], names) == {copy: ["exact"], unigram: ["perplexity"]}
    assert measure_baselines([copy, frequent, unigram], names, rows) == {"perplexity": pytest.approx(2.0), "exact": 1.0}
    assert list(measure_baselines([copy, unigram], names, rows)) == names
    assert measure_baselines([], names, rows) == {}


def test_defaults() -> None:
    assert default_baseline("label") == "majority"
    assert default_baseline("text") == "copy"
    assert default_baseline("text", inputs=False) == "unigram"
