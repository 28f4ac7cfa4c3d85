"""Keys and values that no recipe may have: unknown keys, wrong types, values out of range, unknown kinds."""

from __future__ import annotations

import pytest

from tests.recipe.refusing import LABEL, ONE, Refused, find_problems, mentions, problems_of

REFUSED = [
    Refused({"decodr": {}}, {"decodr": "unknown-key"}, "decoder task description inputs output data"),
    Refused({"decoder": {"sizes": 3}}, {"decoder.sizes": "unknown-key"}, "size kind"),
    Refused({"inputs": {"x": {"tokns": "word"}}}, {"inputs.x.tokns": "unknown-key"}, "tokens kind column"),
    Refused({"inputs": {"column": {"encoder": {"cel": 1}}}}, {"inputs.column.encoder.cel": "unknown-key"}, "cell"),
    Refused({"output": {"kind": "label", "tokns": 3}}, {"output.tokns": "unknown-key"}, "kind column"),
    Refused({"output": {"tokns": 3}}, {"output.tokns": "unknown-key"}, "tokens kind column"),
    Refused({"output": {"text": 3}}, {"output.text": "unknown-key"}, "kind column"),
    Refused({1: 2}, {"1": "unknown-key"}, "task description"),
    Refused({"\ud800": 1}, {"": "type"}, "text"),
    Refused({"output": {"kind": "lable"}}, {"output.kind": "kind"}, "lable label image"),
    Refused({"output": 3}, {"output": "type"}, "mapping 3"),
    Refused({"inputs": 3}, {"inputs": "type"}, "mapping 3"),
    Refused({"inputs": {"x": None}}, {"inputs.x": "type"}, "mapping None"),
    Refused({"inputs": {1: {}}}, {"inputs.1": "type"}, "text 1"),
    Refused({"attention": False}, {"attention": "type"}, "mapping False"),
    Refused({"decoder": {"cell": "gur"}}, {"decoder.cell": "kind"}, "gur gru rnn lstm"),
    Refused({"attention": {"scope": "local"}}, {"attention.scope": "kind"}, "local local-monotonic"),
    Refused({"decoder": {"cell": 3}}, {"decoder.cell": "kind"}, "3 rnn gru lstm"),
    Refused({"inputs": {"x": {"kind": "smell"}}}, {"inputs.x.kind": "kind"}, "smell image"),
    Refused({"decoder": {"size": 0}}, {"decoder.size": "value"}, "0"),
    Refused({"decoder": {"size": "big"}}, {"decoder.size": "type"}, "whole big"),
    Refused({"decoder": {"size": 1.5}}, {"decoder.size": "type"}, "whole 1.5"),
    Refused({"decoder": {"kind": "transformer", "memory": "ten"}}, {"decoder.memory": "type"}, "whole 0 ten"),
    Refused({"decoder": {"dropout": "much"}}, {"decoder.dropout": "type"}, "number much"),
    Refused({"training": {"betas": ["a", 0.9]}}, {"training.betas.0": "type"}, "0 1 'a'"),
    Refused({"decoder": {"dropout": 1.0}}, {"decoder.dropout": "value"}, "1 1.0"),
    Refused({"training": {"learning_rate": float("inf")}}, {"training.learning_rate": "value"}, "finite infinity"),
    Refused({"training": {"betas": [0.9]}}, {"training.betas": "type"}, "2 0 1 [0.9]"),
    Refused({"training": {"betas": [0.9, 1.0]}}, {"training.betas.1": "value"}, "1 1.0"),
    Refused({"training": {"betas": [-0.1, 0.9]}}, {"training.betas.0": "value"}, "0 -0.1"),
    Refused({"training": {"checkpoint_every": 0}}, {"training.checkpoint_every": "value"}, "0"),
    Refused({"search": {"length_penalty": 1e300}}, {"search.length_penalty": "value"}, "10 1e+300"),
    Refused({"search": {"length_penalty": -1}}, {"search.length_penalty": "value"}, "0 -1"),
    Refused(
        {**ONE, "attention": {"scope": "local-monotonic", "window": 10**20}}, {"attention.window": "value"}, "1000000"
    ),
    Refused({**ONE, "attention": {"score": "coverage", "kernel": 10**6}}, {"attention.kernel": "value"}, "255 1000000"),
    Refused({"attention": {"temperature": 1e-300}}, {"attention.temperature": "value"}, "0.001 1e-300"),
    Refused({"attention": {"over": 3}}, {"attention.over": "type"}, "text list 3"),
    Refused({"attention": {"over": [1]}}, {"attention.over": "type"}, "text list [1]"),
    Refused({"loss": {"class_weights": "x"}}, {"loss.class_weights": "type"}, "none balanced mapping 0 x"),
    Refused({"loss": {"class_weights": {"a": "b"}}}, {"loss.class_weights": "type"}, "none balanced mapping"),
    Refused(
        {"loss": {"class_weights": {"yes": 2, "no": 0}}}, {"loss.class_weights": "type"}, "none balanced 0 yes 2 no"
    ),
    Refused({"evaluation": {"metrics": "bleu"}}, {"evaluation.metrics": "type"}, "list bleu"),
    Refused({"data": {"quoting": "maybe"}}, {"data.quoting": "type"}, "true false maybe"),
    Refused({"evaluation": {"baseline": "copi"}}, {"evaluation.baseline": "kind"}, "copi copy"),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_keys_and_values(case: Refused) -> None:
    case.check()


def test_all_problems_are_listed_at_once() -> None:
    keys = {"decodr": 1, "decoder": {"join": "x", "size": -1}, "output": {"kind": "label", "case": "lower"}}
    assert [path for path, _ in problems_of(keys)] == ["output.case", "decoder.size", "decoder.join", "decodr"]
    settings = {"kind": "recurrent", "start": "source", "start_by": "copy"}
    assert problems_of({**LABEL, "decoder": settings, "search": {"beam": 3}}) == [
        ("decoder.kind", "decoder-kind"),
        ("decoder.start_by", "summary-sizes"),
        ("search.beam", "output-settings"),
    ]


def test_a_key_of_an_inputs_own_encoder_is_pointed_at() -> None:
    (problem,) = find_problems("image-captioning", "encoder.backbone=small")
    assert (problem.path, problem.rule) == ("encoder.backbone", "unknown-key")
    assert mentions(problem.message, "inputs.image.encoder.backbone")


def test_an_inputs_own_encoder_is_pointed_at_only_where_it_has_that_key() -> None:
    inputs = {"image": {"kind": "image", "encoder": {"size": 8}}, "question": {"encoder": {"size": 8}}}
    (problem,) = find_problems({"inputs": inputs, "encoder": {"levels": "transformer"}})
    assert "inputs." not in problem.message
    (problem,) = find_problems({"inputs": inputs, "encoder": {"channels": [8]}})
    assert mentions(problem.message, "inputs.image.encoder.channels")
    assert "inputs.question" not in problem.message


def test_a_key_that_inputs_take_from_the_recipes_encoder_is_reported_once() -> None:
    assert problems_of({"inputs": {"a": {"encoder": {"size": 1}}}, "encoder": {"cel": 1}}) == [
        ("encoder.cel", "unknown-key")
    ]
    assert problems_of({"inputs": {"a": {"encoder": {"cel": 1}}}, "encoder": {"cel": 1}}) == [
        ("inputs.a.encoder.cel", "unknown-key"),
        ("encoder.cel", "unknown-key"),
    ]
