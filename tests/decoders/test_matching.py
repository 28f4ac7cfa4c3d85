"""The matching decoder: each place of an input is compared with what it finds in the other one."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.attention.build import AttentionSettings
from seq2see.data.batches import Sequences
from seq2see.decoders import Conditions, LabelDecoder, MatchingDecoder, build_decoder
from seq2see.decoders.base import DecoderSettings
from seq2see.errors import UserError
from seq2see.memory import Memory, View
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from seq2see.search.models import encoder_looks
from tests.decoders.building import MASK, ROWS, SIZE, memory
from tests.recipe.refusing import problems_of
from tests.settings import attention_of

INPUTS = ("premise", "hypothesis")
TWO_TEXTS: dict[str, Any] = {
    "inputs": {"premise": {"kind": "text"}, "hypothesis": {"kind": "text", "share": "premise"}},
    "output": {"kind": "label"},
    "encoder": {"size": 3, "embedding": {"size": 4}},
    "attention": {"score": "additive", "size": 5},
    "decoder": {"kind": "matching", "size": 4, "start": ["premise", "hypothesis"]},
}


def decoder(attention: str = "additive", *, kind: str = "matching", dropout: float = 0.0) -> LabelDecoder:
    torch.manual_seed(4)
    settings: AttentionSettings = attention_of(score=attention)
    views = dict.fromkeys(INPUTS, View(SIZE))
    made = build_decoder(
        DecoderSettings.model_validate({"kind": kind, "size": SIZE, "start": list(INPUTS), "dropout": dropout}),
        settings,
        Conditions(looks={} if attention == "none" else views, places=views, start=dict.fromkeys(INPUTS, SIZE)),
    )
    assert isinstance(made, LabelDecoder)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.eval()


def matching(attention: str = "additive", *, dropout: float = 0.0) -> MatchingDecoder:
    made = decoder(attention, dropout=dropout)
    assert isinstance(made, MatchingDecoder)
    return made


def two_inputs() -> Memory:
    """Places of two inputs, whose rows have different numbers of them."""
    given = memory(inputs=INPUTS)
    given.places["hypothesis"].mask = MASK.roll(1, 0)
    return given


def test_places_are_compared_with_what_they_find() -> None:
    """Place by place and number by number, in Python."""
    made, given = matching(), two_inputs()
    matched = made.match(given)
    W, b = made.W_m.weight.tolist(), made.W_m.bias.tolist()
    for name, other in (INPUTS, INPUTS[::-1]):
        places, others = given.places[name], given.places[other]
        for row in range(ROWS):
            seen = others.states[row][others.mask[row]].tolist()
            compared = []
            for j in places.mask[row].nonzero().flatten().tolist():
                h = places.states[row, j].tolist()
                shares = [exp(sum(a * b for a, b in zip(h, k, strict=True)) / sqrt(SIZE)) for k in seen]
                weights = [share / sum(shares) for share in shares]
                c = [sum(a * k[i] for a, k in zip(weights, seen, strict=True)) for i in range(SIZE)]
                x = [*h, *c, *(a - b for a, b in zip(h, c, strict=True)), *(a * b for a, b in zip(h, c, strict=True))]
                lines = [sum(w * v for w, v in zip(line, x, strict=True)) for line in W]
                compared.append([max(line + bias, 0) for line, bias in zip(lines, b, strict=True)])
                torch.testing.assert_close(matched.places[name].states[row, j], torch.tensor(compared[-1]))
                looked = matched.maps[f"{name}.{other}"].weights[row, j]
                torch.testing.assert_close(looked[others.mask[row]], torch.tensor(weights))
                assert (looked[~others.mask[row]] == 0).all()
            pooled = torch.zeros(2, SIZE)
            if compared:
                columns = list(zip(*compared, strict=True))
                pooled = torch.tensor([[sum(column) / len(column) for column in columns], [max(c) for c in columns]])
            torch.testing.assert_close(matched.summaries[name][row], pooled.flatten())


def test_the_answer_comes_from_compared_places() -> None:
    made, given = matching(), two_inputs()
    matched = made.match(given)
    ready = made.prepare(given)
    step = made.step(ready, made.begin(ready), None)
    both = torch.cat([matched.summaries[name] for name in INPUTS], -1)
    query = torch.tanh(made.start.W_start(both))
    contexts = []
    for name in INPUTS:
        look = made.looking.over[name]
        contexts.append(look(query[:, None], look.prepare(matched.places[name])).context[:, 0])
    torch.testing.assert_close(step.features, torch.cat([query, *contexts], -1))
    assert step.looks.keys() == set(INPUTS)
    assert made.features_size == step.features.shape[1]


def test_it_is_no_label_decoder_by_another_name() -> None:
    given = two_inputs()
    shapes = [sum(one.numel() for one in decoder(kind=kind).parameters()) for kind in ("label", "matching")]
    assert shapes[0] < shapes[1]
    ready = matching("none").prepare(given)
    other = given.select(torch.arange(ROWS))
    other.places["hypothesis"].states = other.places["hypothesis"].states + 1
    assert not torch.allclose(ready.memory.summaries["premise"], matching("none").match(other).summaries["premise"])


def test_every_parameter_learns_and_empty_inputs_do_no_harm() -> None:
    made, given = matching(), two_inputs()
    for name in INPUTS:
        given.places[name].states[~given.places[name].mask] = torch.nan  # padding, which nothing may depend on
        given.places[name].states = given.places[name].states.nan_to_num(7.0)
    ready = made.prepare(given)
    features = made.step(ready, made.begin(ready), None).features
    assert features.isfinite().all()
    features.pow(2).sum().backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_a_row_alone_is_answered_as_in_a_batch() -> None:
    made, given = matching(), two_inputs()

    def features(part: Memory) -> Tensor:
        ready = made.prepare(part)
        return made.step(ready, made.begin(ready), None).features

    together = features(given)
    for row in range(ROWS):
        alone = given.select(torch.tensor([row]))
        torch.testing.assert_close(features(alone)[0], together[row])
        for places in alone.places.values():  # the same with other padding
            places.states = torch.where(places.mask[..., None], places.states, 9.0)
        torch.testing.assert_close(features(alone)[0], together[row])


def test_dropout_changes_compared_places_while_training() -> None:
    made, given = matching(dropout=0.5), two_inputs()
    still = made.match(given).summaries["premise"]
    torch.testing.assert_close(made.match(given).summaries["premise"], still)
    assert not torch.allclose(made.train().match(given).summaries["premise"], still)


def test_maps_have_the_words_of_both_inputs() -> None:
    torch.manual_seed(1)
    model = EncoderDecoder(load_recipe(TWO_TEXTS), Sizes({"premise": 9, "hypothesis": 9}, 3)).eval()
    words = {"premise": [["a", "dog", "runs"], ["no"]], "hypothesis": [["it", "runs"], ["a", "cat"]]}
    lengths = {name: [len(row) for row in rows] for name, rows in words.items()}
    columns = {
        name: Sequences(
            torch.randint(4, 9, (2, max(lengths[name]))),
            torch.arange(max(lengths[name])) < torch.tensor(lengths[name])[:, None],
            symbols=words[name],
        )
        for name in INPUTS
    }
    with torch.no_grad():
        looks = encoder_looks([model.ready(columns, 2)])
    for row, by_name in enumerate(looks):
        assert by_name.keys() == {"premise.hypothesis", "hypothesis.premise"}
        for name, look in by_name.items():
            asking, over = name.split(".")
            assert (look.asking, look.inputs) == (words[asking][row], words[over][row])
            assert look.weights.shape == (len(look.asking), len(look.inputs))
            assert look.weights.sum(1) == pytest.approx(1)


def test_summaries_of_encoders_have_no_settings_here() -> None:
    texts = {"premise": {"kind": "set"}, "hypothesis": {"kind": "set", "share": "premise"}}
    recipe = {**TWO_TEXTS, "inputs": texts, "encoder": {"kind": "deep-sets", "size": 6, "summary_layers": 3}}
    assert ("encoder.summary_layers", "no-effect") in problems_of(recipe)
    assert load_recipe(recipe, overrides=["decoder.kind=label"]).decoder.kind == "label"


def test_the_constructor_guards_sizes() -> None:
    settings = DecoderSettings.model_validate({"kind": "matching", "size": SIZE})
    views = {"premise": View(SIZE), "hypothesis": View(SIZE + 1)}
    for start in (dict.fromkeys(INPUTS, SIZE), {"premise": SIZE}):
        with pytest.raises(UserError, match="matching"):
            build_decoder(settings, attention_of(score="none"), Conditions(places=views, start=start))
