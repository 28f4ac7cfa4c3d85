"""One step with real numbers: those the model used, which follow from each other by the equations beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import seq2see
from tests.cli.conftest import Run

Call = Callable[..., Run]


def softmax(energies: list[float]) -> np.ndarray:
    raised = np.exp(np.array(energies) - max(energies))
    return raised / raised.sum()


@pytest.mark.parametrize("step", [0, 1, 3])
def test_the_numbers_follow_from_each_other_and_are_predicts(call: Call, speller: Path, step: int) -> None:
    record = json.loads(call("explain", speller, "abcd", "--step", step, "--json").out)
    model = seq2see.load(speller)
    prediction = model.predict("abcd")
    (look,) = record["looks"]
    assert look["places"] == list("abcd")
    np.testing.assert_allclose(softmax(look["energies"]), look["weights"], atol=1e-6)
    np.testing.assert_allclose(look["weights"], prediction.looks.weights[step], atol=1e-6)
    memory = model.bundle.network.remember(model.bundle.fields.batch([{"source": "abcd"}]).inputs, 1)
    states = memory.places["source"].states[0].detach().double().numpy()
    np.testing.assert_allclose(np.array(look["weights"]) @ states, look["context"], atol=1e-6)
    assert record["outputs"] == [token.text for token in prediction.tokens]
    assert record["writes"] == prediction.tokens[step].text
    assert record["probability"] == pytest.approx(prediction.tokens[step].probability, abs=1e-6)
    told = [(one["text"], one["probability"]) for one in record["likeliest"]]
    assert [text for text, _ in told] == [text for text, _ in prediction.tokens[step].runners_up]
    assert [p for _, p in told] == pytest.approx([p for _, p in prediction.tokens[step].runners_up], abs=1e-6)


def test_the_query_is_the_state_before_and_gives_the_energies(call: Call, speller: Path) -> None:
    first, second = (json.loads(call("explain", speller, "abcd", "--step", t, "--json").out) for t in (0, 1))
    assert second["query"] == pytest.approx(first["state"])
    assert second["reads"] == first["writes"]
    assert first["reads"] == "<sos>"
    network = seq2see.load(speller).bundle.network
    attention = network.decoder.looking.over["source"]
    memory = network.remember(seq2see.load(speller).bundle.fields.batch([{"source": "abcd"}]).inputs, 1)
    query = torch.tensor(second["query"], dtype=torch.float32)[None, None]
    energies = attention.score.energies(query, attention.prepare(memory.places["source"]).keys)
    assert second["looks"][0]["energies"] == pytest.approx(energies.flatten().tolist(), abs=1e-5)
    assert second["equations"]["energies"] == "e_j = v' tanh(W_q q + W_k k_j)"


def test_a_given_output_is_explained_as_it_is_scored(call: Call, speller: Path) -> None:
    model = seq2see.load(speller)
    (scored,) = model.score([{"source": "abcd", "output": "F E D"}]).each
    for step, log_prob in enumerate(scored.log_probs):
        record = json.loads(call("explain", speller, "abcd", "--target", "F E D", "--step", step, "--json").out)
        assert record["outputs"] == ["F", "E", "D", "<eos>"]
        assert np.log(record["probability"]) == pytest.approx(log_prob, abs=1e-5)


def test_a_step_for_a_person(call: Call, speller: Path) -> None:
    lines = call("explain", speller, "abcd", "--step", 1).lines
    assert lines[0].startswith("step 1 of ")
    assert sum("<- written" in line for line in lines) == 1
    assert any("e_j = v' tanh(W_q q + W_k k_j)" in line for line in lines)
    head = next(number for number, line in enumerate(lines) if "weight a_j" in line)
    assert [line.split()[:2] for line in lines[head + 1 : head + 5]] == [
        [str(j), place] for j, place in enumerate("abcd")
    ]


def test_labels_models_without_attention_and_language_models(
    call: Call, judge: Path, blind: Path, babbler: Path
) -> None:
    label = json.loads(call("explain", judge, "ab\tba", "--json").out)
    assert (label["steps"], label["reads"]) == (1, None)
    np.testing.assert_allclose(softmax(label["looks"][0]["energies"]), label["looks"][0]["weights"], atol=1e-6)
    assert sum(one["probability"] for one in label["likeliest"]) == pytest.approx(1)
    assert json.loads(call("explain", blind, "abcd", "--json").out)["looks"] == []
    starts = [json.loads(call("explain", blind, word, "--json").out)["start"] for word in ("abcd", "fedc")]
    assert starts[0] != starts[1]
    assert "start    s_0 = tanh(W_start (summary of source) + b_start)" in call("explain", blind, "abcd").out
    assert "start" not in json.loads(call("explain", babbler, "--json").out)
    assert json.loads(call("explain", babbler, "--json").out)["reads"] == "<sos>"


def test_out_of_range_says_how_many_there_are(call: Call, speller: Path) -> None:
    steps = json.loads(call("explain", speller, "abcd", "--json").out)["steps"]
    assert f"has {steps} steps" in call("explain", speller, "abcd", "--step", steps).err
