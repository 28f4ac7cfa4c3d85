"""One step with real numbers: those the model used, which follow from each other by the equations beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.data.vocabulary import SOS
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from tests.commands import Run

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
    memory = model.bundle.network.encode(model.bundle.fields.batch([{"source": "abcd"}]).inputs, 1)
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
    memory = network.encode(seq2see.load(speller).bundle.fields.batch([{"source": "abcd"}]).inputs, 1)
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
    shown = call("explain", speller, "abcd", "--step", 1).lines
    assert shown[0].startswith("step 1 of ")
    assert sum("<- written" in line for line in shown) == 1
    assert any("e_j = v' tanh(W_q q + W_k k_j)" in line for line in shown)
    head = next(number for number, line in enumerate(shown) if "weight a_j" in line)
    assert [line.split()[:2] for line in shown[head + 1 : head + 5]] == [
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


TRANSFORMER = {
    "task": "speller",
    "inputs": {"source": {"kind": "text", "tokens": "character"}},
    "output": {"kind": "text", "tokens": "symbol"},
    "encoder": {"kind": "transformer", "size": 8, "layers": 1, "heads": 2, "feedforward": 8, "embedding": {"size": 8}},
    "decoder": {"kind": "transformer", "size": 8, "layers": 2, "heads": 2, "feedforward": 8, "embedding": {"size": 8}},
    "attention": {"score": "scaled-dot", "heads": 2},
}
LETTERS = [{"source": "abcd", "output": "A B C D"}, {"source": "dc", "output": "D C"}]


def untrained(**changes: object) -> Model:
    recipe = load_recipe({**TRANSFORMER, **changes})
    return Model(Bundle.create(recipe, Fields.build(recipe, lambda: iter(LETTERS))))


def test_every_layer_and_head_of_a_transformer_has_the_numbers_of_its_step() -> None:
    model = untrained()
    record = model.explain("abcd", target="A B", step=1).to_dict()
    network, fields = model.bundle.network.eval(), model.bundle.fields
    with torch.no_grad():
        ready = replace(network.ready(fields.batch([{"source": "abcd"}]).inputs, 1), maps=True)
        ids = [SOS, fields.output.vocabulary.symbols.index("A")]
        state, steps = network.begin(ready), []
        for number in ids:
            steps.append(network.step(ready, state, torch.tensor([number])))
            state = steps[-1].state
    step = steps[-1]
    assert [layer["layer"] for layer in record["layers"]] == [1, 2]
    for number, layer in enumerate(record["layers"]):
        (look,) = layer["looks"]
        made = [*step.lower, step.looks][number]["source"]
        happened = step.layers[number]
        close(layer["state"], happened.state[0])
        assert happened.query is not None
        close(layer["query"], happened.query[0])
        close(look["context"], made.context[0])
        attention = network.decoder.blocks[number].looking.over["source"]
        queries = attention.W_q(happened.query[0]).view(2, -1)
        for head, told in enumerate(look["heads"]):
            close(told["query"], queries[head])
            close(told["energies"], made.energies_by_head()[0, head])
            close(told["weights"], made.by_head()[0, head])
            np.testing.assert_allclose(softmax(told["energies"]), told["weights"], atol=1e-6)
        joined = torch.tensor([number for told in look["heads"] for number in told["context"]])
        close(look["context"], attention.W_o(joined))
        own = layer["self_attention"]
        assert own["places"] == ["<sos>", "A"]
        for head, told in enumerate(own["heads"]):
            close(told["weights"], step.self_weights[number][0, head])
            np.testing.assert_allclose(softmax(told["energies"]), told["weights"], atol=1e-6)
    close(record["state"], step.features[0])
    close(record["query"], step.layers[-1].query[0])
    assert record["looks"] == record["layers"][-1]["looks"]
    probabilities = network.log_probs(step, ready)[0].detach().exp()
    assert record["likeliest"][0]["probability"] == pytest.approx(float(probabilities.max()), abs=1e-6)


def test_the_layers_of_a_transformer_for_a_person() -> None:
    model = untrained()
    shown = model.explain("abcd", target="A B", step=1).text().splitlines()
    assert [line for line in shown if line.startswith("layer ")] == ["layer 1", "layer 2"]
    assert sum("head 2  query: " in line for line in shown) == 4
    assert sum(line.startswith("looks at source") for line in shown) == 2


def test_a_transformer_without_inputs_shows_what_it_read() -> None:
    model = untrained(inputs={}, attention="none", encoder={})
    record = model.explain({}, target="A B", step=2).to_dict()
    assert record["looks"] == []
    assert [layer["self_attention"]["places"] for layer in record["layers"]] == [["<sos>", "A", "B"]] * 2


def test_a_recurrent_decoder_of_several_layers_shows_the_state_of_each() -> None:
    cells = {"kind": "recurrent", "size": 8, "layers": 2, "embedding": {"size": 4}}
    encoder = {"kind": "recurrent", "size": 4, "embedding": {"size": 4}}
    record = untrained(decoder=cells, encoder=encoder, attention={"size": 4}).explain("abcd", target="A B").to_dict()
    assert [layer["layer"] for layer in record["layers"]] == [1, 2]
    assert record["layers"][1]["state"] == record["state"]
    assert record["layers"][1]["query"] == record["query"]


def close(told: list[float], computed: torch.Tensor) -> None:
    np.testing.assert_allclose(told, computed.detach().double().numpy(), atol=1e-5)
