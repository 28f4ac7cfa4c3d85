"""Looks told apart: heads and layers travel through every search, and cost nothing where nobody asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from seq2see.search import SearchOptions, search
from tests.search.helpers import EOS, INPUTS, SOS, SYMBOLS, padded

SEARCHES: list[dict[str, Any]] = [{}, {"beam": 3, "n_best": 2}, {"sample": True, "n_best": 2}]


def build(*, kind: str = "transformer", heads: int = 3, score: str = "scaled-dot", seed: int = 0) -> EncoderDecoder:
    torch.manual_seed(seed)
    decoder = {"size": 12, "layers": 2, "embedding": {"size": 5}}
    if kind == "transformer":
        decoder |= {"kind": kind, "heads": 2, "feedforward": 8}
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": {"kind": "transformer", "size": 12, "heads": 2, "feedforward": 8, "embedding": {"size": 5}},
            "attention": {"score": score, "heads": heads},
            "decoder": decoder,
        }
    )
    model = EncoderDecoder(recipe, Sizes({"source": 12}, SYMBOLS))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model.eval()


@torch.no_grad()
def by_hand(model: EncoderDecoder, row: list[int], ids: list[int]) -> dict[str, np.ndarray]:
    """Every look of reading those ids alone: ([heads,] steps, places) by name."""
    ready = model.ready(padded([row]), 1)
    step = model.decoder.teach(ready, model.begin(ready), torch.tensor([[SOS, *ids[:-1]]]))
    real = len(row)
    return {name: look.by_head()[0].transpose(0, -2)[..., :real].numpy() for name, look in step.by_layer().items()}


@pytest.mark.parametrize("options", SEARCHES, ids=["greedy", "beam", "sample"])
@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_heads_and_layers_are_those_of_the_output(kind: str, options: dict[str, Any]) -> None:
    model = build(kind=kind)
    made = search([(model, padded(INPUTS))], range(len(INPUTS)), SearchOptions(max_length=6, **options), maps=True)
    names = ["source", "source.layer-1"] if kind == "transformer" else ["source"]
    for row, hypotheses in zip(INPUTS, made, strict=True):
        for one in hypotheses:
            wanted = by_hand(model, row, one.ids)
            assert list(one.maps) == list(wanted) == names
            for name, weights in one.maps.items():
                assert weights.shape == (3, len(one.ids), len(row))
                np.testing.assert_allclose(weights, wanted[name], atol=1e-4)
            np.testing.assert_allclose(one.looks["source"], one.maps["source"].mean(0), atol=1e-6)
            assert list(one.looks) == ["source"]
            assert set(one.layouts) == set(names)


def test_one_head_has_maps_of_two_dimensions() -> None:
    model = build(heads=1, score="coverage")
    (best,) = search([(model, padded([[4, 5, 6]]))], [0], SearchOptions(max_length=4), maps=True)[0]
    assert list(best.maps) == ["source.layer-1"]
    wanted = by_hand(model, [4, 5, 6], best.ids)["source.layer-1"]
    np.testing.assert_allclose(best.maps["source.layer-1"], wanted, atol=1e-5)


def test_what_is_found_does_not_depend_on_being_watched() -> None:
    model, options = build(), SearchOptions(max_length=6, beam=3, coverage_penalty=0.4)
    plain, apart = (search([(model, padded(INPUTS))], range(len(INPUTS)), options, maps=maps) for maps in (False, True))
    for one, other in zip(plain, apart, strict=True):
        assert one[0].ids == other[0].ids
        assert one[0].score == pytest.approx(other[0].score, abs=1e-4)
        assert one[0].maps == {}
        np.testing.assert_allclose(one[0].looks["source"], other[0].looks["source"], atol=1e-5)


def test_an_ensemble_tells_its_mean_alone() -> None:
    sources = [(build(seed=seed), padded([[4, 5, 6]])) for seed in (1, 2)]
    (best,) = search(sources, [0], SearchOptions(max_length=4), maps=True)[0]
    assert best.maps == {}
    assert best.looks["source"].shape == (len(best.ids), 3)


def test_one_layer_can_be_handed_its_weights() -> None:
    model = build()
    forced = {0: {"source.layer-1": [0.0, 1.0, 0.0]}}
    options = SearchOptions(max_length=4, oracle=forced)
    (best,) = search([(model, padded([[4, 5, 6]]))], [0], options, maps=True)[0]
    np.testing.assert_allclose(best.maps["source.layer-1"][:, 0], [[0, 1, 0]] * 3, atol=1e-6)
    assert not np.allclose(best.maps["source"][:, 0], [[0, 1, 0]] * 3, atol=1e-3)
    everywhere = SearchOptions(max_length=4, oracle={0: {"source": [0.0, 1.0, 0.0]}})
    (best,) = search([(model, padded([[4, 5, 6]]))], [0], everywhere, maps=True)[0]
    for weights in best.maps.values():
        np.testing.assert_allclose(weights[:, 0], [[0, 1, 0]] * 3, atol=1e-6)
    assert EOS in best.ids or len(best.ids) == 4
