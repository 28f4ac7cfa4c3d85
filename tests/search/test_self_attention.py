"""Sequences that look at themselves: a decoder at its own hypothesis, whatever the search; encoders at their input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seq2see.decoders.transformer import TransformerDecoder
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from seq2see.search import Hypothesis, SearchOptions, search
from tests.search.helpers import INPUTS, SOS, SYMBOLS, padded

SEARCHES: list[dict[str, Any]] = [{}, {"beam": 4, "n_best": 3}, {"sample": True, "n_best": 2}]
HEADS, LAYERS = 2, 2


def build(*, attention: str = "scaled-dot", encoder: str = "transformer", seed: int = 0) -> EncoderDecoder:
    torch.manual_seed(seed)
    decoder = {"kind": "transformer", "size": 12, "layers": LAYERS, "heads": HEADS, "feedforward": 8}
    reading: dict[str, Any] = {"kind": encoder, "size": 12, "embedding": {"size": 5}}
    reading |= {"self_attention": "additive"} if encoder == "recurrent" else {"heads": 3, "feedforward": 8, "layers": 2}
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": reading | ({"bidirectional": False} if encoder == "recurrent" else {}),
            "attention": {"score": attention},
            "decoder": decoder | {"embedding": {"size": 5}},
        }
    )
    model = EncoderDecoder(recipe, Sizes({"source": 12}, SYMBOLS))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model.eval()


def found(model: EncoderDecoder, *, maps: bool = True, **options: Any) -> list[list[Hypothesis]]:
    return search([(model, padded(INPUTS))], range(len(INPUTS)), SearchOptions(max_length=6, **options), maps=maps)


@torch.no_grad()
def read_alone(model: EncoderDecoder, row: list[int], ids: list[int]) -> list[np.ndarray]:
    """Per layer (heads, steps, steps): how reading `<sos>` and all but the last of these ids looks back."""
    ready = model.ready(padded([row]), 1, maps=True)
    state, told = model.begin(ready), [np.zeros((HEADS, len(ids), len(ids))) for _ in range(LAYERS)]
    for number, token in enumerate([SOS, *ids[:-1]]):
        step = model.step(ready, state, torch.tensor([token]))
        state = step.state
        for layer, weights in enumerate(step.self_weights):
            told[layer][:, number, : number + 1] = weights[0]
    return told


@pytest.mark.parametrize("options", SEARCHES, ids=["greedy", "beam", "sample"])
@pytest.mark.parametrize("attention", ["scaled-dot", "none", "coverage"])
def test_a_decoder_tells_how_it_looked_at_its_own_output(attention: str, options: dict[str, Any]) -> None:
    model = build(attention=attention)
    for row, hypotheses in zip(INPUTS, found(model, **options), strict=True):
        for one in hypotheses:
            wanted = read_alone(model, row, one.ids)
            assert list(one.inward) == ["output.self-1", "output.self-2"]
            for weights, by_itself in zip(one.inward.values(), wanted, strict=True):
                np.testing.assert_allclose(weights, by_itself, atol=1e-5)
                assert (np.triu(weights, 1) == 0).all()
                np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


@torch.no_grad()
def test_the_first_layers_looks_are_the_softmax_of_its_energies() -> None:
    model = build()
    one = found(model, beam=3)[0][0]
    assert isinstance(model.decoder, TransformerDecoder)
    layer = model.decoder.blocks[0]
    read = torch.tensor([[SOS, *one.ids[:-1]]])
    normal = layer.norm_1(model.decoder.entrance(read))[0]
    queries, keys = layer.inward.W_q(normal), layer.inward.W_k(normal)
    for head, part in enumerate(torch.arange(12).chunk(HEADS)):
        energies = queries[:, part] @ keys[:, part].T / len(part) ** 0.5
        hidden = torch.ones_like(energies).triu(1).bool()
        wanted = energies.masked_fill(hidden, -torch.inf).softmax(-1)
        np.testing.assert_allclose(one.inward["output.self-1"][head], wanted, atol=1e-5)


@pytest.mark.parametrize("options", SEARCHES, ids=["greedy", "beam", "sample"])
def test_being_watched_changes_nothing(options: dict[str, Any]) -> None:
    model = build()
    for plain, told in zip(found(model, maps=False, **options), found(model, **options), strict=True):
        assert [one.ids for one in plain] == [one.ids for one in told]
        np.testing.assert_allclose([one.score for one in plain], [one.score for one in told], atol=1e-4)
        assert all(one.inward == one.inner == {} for one in plain)


@pytest.mark.parametrize(
    ("encoder", "names"), [("transformer", ["source.self-1", "source.self-2"]), ("recurrent", ["source.self-1"])]
)
def test_an_encoders_maps_are_the_same_for_every_hypothesis(encoder: str, names: list[str]) -> None:
    model = build(encoder=encoder)
    for row, hypotheses in zip(INPUTS, found(model, beam=3, n_best=2), strict=True):
        alone = model.encode(padded([row]), 1, maps=True).maps if row else {}
        for one in hypotheses:
            assert list(one.inner) == names
            for name, inner in one.inner.items():
                assert inner.weights.shape[-2:] == (len(row), len(row))
                if row:
                    np.testing.assert_allclose(inner.weights, alone[name].weights[0].detach(), atol=1e-5)


def test_an_ensemble_tells_nothing_of_the_kind() -> None:
    sources = [(build(seed=seed), padded([[4, 5, 6]])) for seed in (1, 2)]
    (best,) = search(sources, [0], SearchOptions(max_length=4), maps=True)[0]
    assert best.inward == best.inner == {}
