"""The five answers: every number can be counted again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.attention import LookEquations, scores
from seq2see.pipeline.bundle import meta_network
from seq2see.pipeline.five_answers import (
    Count,
    answers_of,
    decoder_equations,
    format_count,
    network_parameters,
    recipe_parameters,
    total_count,
)
from seq2see.recipe import Recipe, load_recipe, shipped
from tests.commands import Run

Call = Callable[..., Run]


def look_equations(recipe: Recipe) -> LookEquations:
    """How the decoder of a recipe attends to its inputs."""
    equations = decoder_equations(recipe, meta_network(recipe, {})).attention
    assert equations is not None
    return equations


def worth(count: Count, sizes: dict[str, int]) -> int:
    """A count with the vocabularies filled in."""
    return sum(number * prod(sizes[name] for name in key) for key, number in count.items())


@pytest.mark.parametrize("name", ["speller", "blind", "judge", "babbler"])
def test_the_total_of_a_model_is_the_number_of_its_parameters(
    call: Call, name: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(name)
    record = json.loads(call("show", folder, "--json").out)
    network = seq2see.load(folder).bundle.network
    assert record["total"] == sum(parameter.numel() for parameter in network.parameters())
    assert sum(part["count"] for part in record["parameters"]) == record["total"]
    assert f"{record['total']:,}" in call("show", folder).out


@pytest.mark.parametrize("name", ["speller", "blind", "judge", "babbler"])
def test_the_formula_of_a_recipe_holds_for_its_model(name: str, request: pytest.FixtureRequest) -> None:
    bundle = seq2see.load(request.getfixturevalue(name)).bundle
    sizes = {name: len(field.vocabulary) for name, field in bundle.fields.all.items()}
    counted = recipe_parameters(bundle.recipe, {})
    assert worth(total_count(counted), sizes) == worth(total_count(network_parameters(bundle.network)), {})
    known = recipe_parameters(bundle.recipe, sizes)
    assert [one.shape for one in known] == [one.shape for one in network_parameters(bundle.network)]


def test_a_vocabulary_that_enters_twice_is_squared() -> None:
    recipe = load_recipe({"decoder": {"embedding": {"kind": "one-hot"}, "size": 4}})
    count = total_count(recipe_parameters(recipe, {}))
    assert count["output", "output"] == 1  # V sees e(y_{t-1}), as long as the vocabulary
    assert format_count({(): 0, ("output",): 1, ("output", "output"): 2}) == "|output| + 2 |output| |output|"


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_recipe_can_be_shown(call: Call, name: str) -> None:
    run = call("show", name)
    assert run.code == 0, run.err
    assert [line[0] for line in run.lines if line[:1].isdigit()] == list("12345")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "e_j = v' tanh(W_q q + W_k k_j), with q = s_{t-1} and k_j = h_j of source\n"),
        ({}, "s_t = gru(s_{t-1}, [e(y_{t-1}); c_t])"),
        ({}, "P(y_t | y_<t, x) = softmax(V [s_t; c_t; e(y_{t-1})] + c)"),
        ({"attention": {"query": "current"}}, "s_t = gru(s_{t-1}, [e(y_{t-1}); c_{t-1}])"),
        ({"attention": {"query": "current", "input_feeding": False}}, "s_t = gru(s_{t-1}, [e(y_{t-1})])"),
        ({"attention": {"score": "concat"}}, "e_j = v' tanh(W [q; k_j]), with q"),
        (
            {"attention": {"score": "cosine", "learned_temperature": True}, "decoder": {"size": 512}},
            "(|q| |k_j|), times a learned t",
        ),
        ({"attention": "none"}, "s_0 = tanh(W_start (summary of source) + b_start)"),
        ({"decoder": {"output": "state"}}, "softmax(V s_t + c)"),
        ({"decoder": {"readout": 8}}, "softmax(V tanh(W_o [s_t; c_t; e(y_{t-1})] + b_o) + c)"),
        ({"decoder": {"tied": True}}, "softmax(E tanh(W_o [s_t; c_t; e(y_{t-1})] + b_o) + c)"),
        ({"decoder": {"every_step": "source"}}, "[e(y_{t-1}); c_t; summary of source]"),
        ({"decoder": {"reset": "before"}}, "U_n (r * s_{t-1})"),
        ({"decoder": {"cell": "rnn", "activation": "logistic"}}, "s_t = logistic(W x_t + U s_{t-1} + b)"),
        ({"encoder": {"bidirectional": False}}, "summary = h_M, the last state"),
        ({"training": {"epochs": 3}}, "stops after 3 epochs"),
        ({}, "dev: --dev, or 5% of the rows (at most 2,000) set aside"),
        ({}, "batches of 1,500 symbols"),
        (
            {"encoder": {"dropout": 0.2, "embedding": {"dropout": 0.1}}, "decoder": {"embedding": {"dropout": 0.4}}},
            "dropout: encoder 0.2, e(x) 0.1, e(y) 0.4\n",
        ),
        (
            {
                "inputs": {"a": {"encoder": {"dropout": 0.3}}, "b": {}, "c": {"share": "a"}},
                "encoder": {"dropout": 0.2},
                "decoder": {"dropout": 0.5},
            },
            "dropout: encoder of a 0.3, encoder 0.2, decoder 0.5\n",
        ),
    ],
)
def test_the_equations_are_those_of_this_very_model(changes: dict[str, object], said: str) -> None:
    made: Recipe = load_recipe({"inputs": {"source": {}}, **changes})
    assert said in answers_of(made).text()


@pytest.mark.parametrize("name", list(scores))
def test_every_score_begins_with_its_equation(name: str) -> None:
    made = load_recipe({"inputs": {"source": {}}, "attention": name, "decoder": {"size": 512}})
    equation = look_equations(made).score
    assert equation.startswith("e_j = ")
    assert not re.search(r"[;:,] [a-z]{2,}", equation), "a remark is left"
    assert equation.count("[") == equation.count("]")
    assert equation.count("(") == equation.count(")")


def test_a_score_that_says_nothing_of_itself_is_shown_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores["additive"], "__doc__", None)
    assert look_equations(load_recipe({"inputs": {"source": {}}})).score == "e_j = additive(q, k_j)"


def test_a_stream_is_told_as_it_is_read() -> None:
    made = load_recipe({"data": {"stream": True, "dev_share": 0.1}, "training": {"lanes": 8, "bptt": 20}})
    told = answers_of(made).text()
    assert "dev: --dev, or the last 10% of the text set aside" in told
    assert "batches of 8 lanes of 20 symbols" in told
    assert "of the rows" not in told


def test_overrides_change_the_answers(call: Call) -> None:
    run = call("show", "translation", "--set", "attention=none")
    assert "attention   none" in run.out
    assert "W_q" not in run.out


def test_the_loss_of_draws_is_told() -> None:
    hard = {"inputs": {"source": {}}, "attention": {"choice": "hard"}, "loss": {"exploration": 0.25}}
    told = "\n".join(answers_of(load_recipe(hard)).loss)
    assert "+ (-sum_t R_t log a_t(j_t)), j_t the place drawn" in told
    assert "the moving mean of log P(y_i) (decay 0.9)" in told
    assert "- 0.25 sum_t H(a_t) (exploration" in told
    for attention in ({"choice": "hard", "estimator": "gumbel"}, {}):
        assert "R_t" not in "\n".join(answers_of(load_recipe({**hard, "attention": attention, "loss": {}})).loss)


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("local-monotonic", "p_t = t, a column;  asked are all rows of the columns j with |j - p_t| <= 3"),
        ("local-predicted", "asked are rows i and columns j with |i - r_t| <= 3 and |j - p_t| <= 3"),
    ],
)
def test_windows_of_a_picture_have_rows_and_columns(scope: str, said: str) -> None:
    given = {"inputs": {"image": {"kind": "image"}}, "attention": {"scope": scope, "window": 3}}
    assert said in look_equations(load_recipe(given)).window[0]


WORDS: dict[str, Any] = {
    "inputs": {"doc": {"kind": "texts"}},
    "encoder": {"kind": "hierarchical", "size": 8, "bidirectional": False},
    "decoder": {"size": 8},
}


def through(**attention: object) -> Recipe:
    return load_recipe({**WORDS, "attention": {"over": "doc.words", "through": "sentences", **attention}})


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scope", ["global", "local-predicted"])
@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
@pytest.mark.parametrize("score", list(scores))
def test_no_two_parameters_have_one_name(score: str, kind: str, scope: str, heads: int) -> None:
    attention = {"score": score, "scope": scope, "heads": heads}
    decoder = {"size": 8, "kind": kind, "layers": 2}
    flat = load_recipe({"inputs": {"x": {}}, "encoder": {"size": 4}, "attention": attention, "decoder": decoder})
    nested = load_recipe(through(**attention), overrides=[f"decoder.kind={kind}", "decoder.layers=2"])
    for made in (flat, nested):
        named = [(one.part, one.name) for one in recipe_parameters(made, {})]
        attended = [one for one in named if one[0].startswith("attention")]
        assert len(attended) == len(set(attended)), sorted(one for one in attended if attended.count(one) > 1)


def test_both_levels_of_heads_are_named_as_in_their_equations() -> None:
    made = through(score="additive", size=4, heads=2)
    shapes = {one.name: one.shape for one in recipe_parameters(made, {}) if one.part == "attention over doc.words"}
    assert shapes["W_q, words"] == shapes["W_q, sentences"] == ("4", "4")
    for level in ("words", "sentences"):
        assert shapes[f"W_q of heads, {level}"] == shapes[f"W_k of heads, {level}"] == ("8", "8")
    assert {"W_v of heads, words", "b_v of heads, words", "W_o of heads", "b_o of heads"} < shapes.keys()
    told = answers_of(made).text()
    assert "as w_ij (of heads, words)\n" in told
    assert "for sentences its part of W_q q + b_q as q, of W_k h_i + b_k as k_i (of heads, sentences)\n" in told
    assert "heads" not in answers_of(through(size=4)).text()


@pytest.mark.parametrize(("temperature", "sharp"), [(1.0, ""), (0.5, " / 0.5")])
def test_words_are_weighed_among_those_of_their_sentence(temperature: float, sharp: str) -> None:
    made = through(temperature=temperature)
    above, within, product = look_equations(made).weights
    assert above.startswith(f"a_ti = exp(e_ti{sharp}) / sum_k exp(e_tk{sharp}), over the sentences")
    assert within == f"a_tj|i = exp(e_tj{sharp}) / sum_k exp(e_tk{sharp}), over the words of sentence i"
    assert product.startswith("a_tij = a_ti * a_tj|i")
    assert "c_t = sum_ij a_tij w_ij\n" in answers_of(made).text()


def test_what_is_no_recipe_may_have_been_a_model(call: Call) -> None:
    run = call("show", "runs/gone")
    assert run.code == 2
    assert "unknown recipe 'runs/gone'" in run.err
    assert run.err.rstrip().endswith("or a model folder")
