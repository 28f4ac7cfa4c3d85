"""One pipeline from inputs to predictions: what a user is told adds up, whichever way it is asked for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.errors import Notice, UserError


def test_a_text_in_gives_a_prediction_and_a_list_gives_a_list(model: Model) -> None:
    alone = model.predict("aex")
    (listed,) = model.predict(["aex"])
    assert alone.text == listed.text
    assert isinstance(model.predict(["aex", "box"]), list)


def test_it_has_learned(model: Model) -> None:
    assert [one.text for one in model.predict(["aex", "diw", "coy"])] == ["AEX", "DIW", "COY"]


def test_tokens_probabilities_and_looks_fit_each_other(model: Model) -> None:
    made = model.predict("aex", beam=3, n_best=3)
    assert [token.text for token in made.tokens][-1] == "<eos>"
    assert math.isclose(sum(math.log(token.probability) for token in made.tokens), made.log_probability, abs_tol=1e-4)
    assert made.looks.weights.shape == (len(made.tokens), 3)
    assert made.looks.outputs == [token.text for token in made.tokens]
    assert made.looks.inputs["source"] == model.places("aex") == ["a", "e", "x"]
    np.testing.assert_allclose(made.looks.weights.sum(1), 1.0, atol=1e-5)
    scores = [made.score, *(other.score for other in made.alternatives)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    best, chance = made.tokens[0].runners_up[0]
    assert best == made.tokens[0].text
    assert chance == pytest.approx(made.tokens[0].probability, abs=1e-6)


def test_a_beam_brings_its_other_hypotheses_along(model: Model) -> None:
    made = model.predict("aex", beam=4)
    assert len(made.alternatives) == 3
    assert model.predict("aex", beam=4, n_best=1).alternatives == []
    assert model.predict("aex", beam=1).alternatives == []


def test_an_answer_does_not_depend_on_the_batch(model: Model) -> None:
    words = ["a", "aexaexaexaex", "box", "diw", "zzzzz"]
    together = model.predict(words, beam=3)
    for word, one in zip(words, together, strict=True):
        (alone,) = model.predict([word], beam=3)
        assert alone.text == one.text
        assert alone.log_probability == pytest.approx(one.log_probability, abs=1e-5)


def test_the_callers_attention_is_used_at_its_step_alone(model: Model) -> None:
    free = model.predict("aex", beam=1)
    forced = model.predict("aex", beam=1, oracle={1: [0.0, 0.0, 1.0]})
    np.testing.assert_allclose(forced.looks.weights[1], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(forced.looks.weights[0], free.looks.weights[0], atol=1e-6)
    assert forced.log_probability != pytest.approx(free.log_probability, abs=1e-3)


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        ({0: [1.0]}, "1 weight for 'source', which has 3 places"),
        ({0: [0.5, 0.6, 0.0]}, "must sum to 1, got 1.1"),
        ({0: [1.5, -0.5, 0.0]}, "from 0 to 1"),
        ({0: [math.inf, 0, 0]}, "from 0 to 1"),
        ({500: [1, 0, 0]}, "step 500; allowed: 0 to 99"),
        ({-1: [1, 0, 0]}, "step -1; steps are whole numbers, counted from 0"),
        ({0.5: [1, 0, 0]}, "step 0.5; steps are whole numbers"),
        ({"first": [1, 0, 0]}, "step 'first'; steps are whole numbers"),
        ({0: 1.0}, r"step 0: expected a list of numbers, one for each place, got 1\.0"),
        ({0: ["much", 0, 0]}, "step 0: expected a list of numbers"),
        ({0: {"sauce": [1, 0, 0]}}, "'sauce' is not looked at"),
        ([1, 0, 0], r"expected \{step: weights\}"),
    ],
)
def test_oracles_that_cannot_be_followed_are_refused(model: Model, oracle: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"oracle.*{message}"):
        model.predict("aex", oracle=oracle)


def test_weights_for_a_step_that_is_not_reached_are_told_of(model: Model) -> None:
    with pytest.warns(Notice, match=r"oracle: step 9 is not reached: the output has 4 steps, counted from 0"):
        said = model.predict("aex", beam=1, oracle={9: [1.0, 0.0, 0.0]})
    assert said.log_probability == model.predict("aex", beam=1).log_probability
    with pytest.warns(Notice, match="step 9 is not reached: 2 of 2 outputs end before it"):
        model.predict(["aex", "box"], beam=1, oracle={9: [1.0, 0.0, 0.0]})


def test_a_table_in_parts_is_drawn_like_the_whole(model: Model) -> None:
    words = ["aex", "aex", "box", "aex", "a", "aex"]
    drawing: dict[str, Any] = {"sample": True, "temperature": 5.0, "seed": 3}
    whole = [one.text for one in model.predict(words, **drawing)]
    assert len({whole[0], whole[1], whole[3], whole[5]}) > 1
    for size in (1, 2, 4):
        parts = [
            one.text
            for start in range(0, len(words), size)
            for one in model.predict(words[start : start + size], first_row=start, **drawing)
        ]
        assert parts == whole


def test_a_prefix_begins_the_output(model: Model) -> None:
    assert model.predict("aex", prefix="BO").text.startswith("BO")


def test_unknown_symbols_become_what_was_looked_at(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    field = model.bundle.fields.text_output
    ids = dict(field.vocabulary.ids)
    made = model.predict("aex", beam=1)
    with pytest.warns(Notice, match="prefix: '\\?' is not known to the model: read as <unk>"):
        shown = model.predict("aex", beam=1, prefix="?", replace_unknown=True)
    assert "?" not in ids
    place = int(np.argmax(shown.looks.weights[0]))
    assert shown.tokens[0].text == "aex"[place]
    with pytest.warns(Notice, match="prefix"):
        assert model.predict("aex", beam=1, prefix="?").tokens[0].text == "<unk>"
    assert made.text == "AEX"


def test_a_model_with_itself_is_an_ensemble_that_says_the_same(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    twice = seq2see.load(f"{tmp_path / 'm'}+{tmp_path / 'm'}")
    assert len(twice.bundles) == 2
    alone, both = model.predict("aex", beam=2), twice.predict("aex", beam=2)
    assert alone.text == both.text
    assert alone.log_probability == pytest.approx(both.log_probability, abs=1e-5)


def test_models_that_speak_different_languages_cannot_speak_together(model: Model, labels: Model) -> None:
    with pytest.raises(UserError, match="same output vocabulary"):
        Model([model.bundle, labels.bundle])


def test_saved_and_loaded_it_is_the_same_model(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "copy")
    again = seq2see.load(tmp_path / "copy")
    assert again.recipe == model.recipe
    assert again.predict("aex").log_probability == model.predict("aex").log_probability
    assert not [path for path in (tmp_path / "copy").iterdir() if path.suffix in (".pt", ".pkl", ".bin")]


def test_a_label_comes_with_one_look_per_input_and_its_runners_up(labels: Model) -> None:
    made = labels.predict(("a x", "a x"), n_best=2)
    assert made.label in ("same", "other")
    assert made.text is None
    assert {made.label, made.alternatives[0].text} == {"same", "other"}
    assert math.exp(made.log_probability) + math.exp(made.alternatives[0].log_probability) == pytest.approx(1.0)
    assert {name: weights.shape for name, weights in made.looks.maps.items()} == {"one": (1, 2), "two": (1, 2)}
    assert set(made.to_dict()) >= {"input", "label", "log_probability", "score", "tokens", "alternatives"}


def test_what_has_no_meaning_for_a_label_is_refused(labels: Model) -> None:
    with pytest.raises(UserError, match="beam"):
        labels.predict(("a", "b"), beam=3)
    with pytest.raises(UserError, match="prefix"):
        labels.predict(("a", "b"), prefix="s")


@pytest.mark.parametrize("given", [("a",), {"one": "a"}, "a", 7, {"one": "a", "two": 3}])
def test_inputs_that_do_not_fit_are_refused_by_name(labels: Model, given: object) -> None:
    with pytest.raises(UserError, match=r"one|two"):
        labels.predict(given)  # type: ignore[call-overload]


def test_vectors_of_inputs(model: Model) -> None:
    first, second, again = model.encode(["aex", "box", "aex"])
    assert len(first) == 24
    assert first == pytest.approx(again, abs=1e-6)
    assert first != pytest.approx(second, abs=1e-3)


@pytest.mark.parametrize("given", ["", "  ", {"source": ""}])
def test_an_empty_input_is_refused_where_it_stands_alone(model: Model, given: Any) -> None:
    for ask in (model.predict, model.look, model.explain):
        with pytest.raises(UserError, match="the input is empty"):
            ask(given)
    with pytest.warns(Notice, match="1 of 2 rows"):
        assert len(model.predict(["aex", ""])) == 2  # a line of a file may be empty, and has no answer


def test_a_beam_of_nothing_is_named_as_such(model: Model) -> None:
    with pytest.raises(UserError, match=r"^beam must be a number of at least 1, got 0$"):
        model.look("aex", beam=0)


def test_a_series_is_a_list_an_array_or_a_tensor(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    lines = [f"{i} {i}; {i + 1} 0; 2 {i}\t{'ab'[i % 2]}" for i in range(30)]
    table.write_text("\n".join(["series\tlabel", *lines]) + "\n", encoding="utf-8")
    recipe = {"inputs": {"series": {"kind": "series"}}, "output": {"kind": "label", "column": "label"}}
    model = seq2see.train(recipe, table, out=tmp_path / "run", updates=1, listeners=[])
    steps = [[1, 2], [3, 4]]
    expected = model.predict("1 2; 3 4").log_probability
    for value in (np.array(steps), torch.tensor(steps), {"series": steps}):
        assert model.predict(value).log_probability == expected
    assert [one.log_probability for one in model.predict([steps, steps])] == [expected, expected]
    with pytest.raises(UserError, match=r"1 channel, .*; a list of lists is several inputs: .* {'series': \[...\]}"):
        model.predict(steps)
