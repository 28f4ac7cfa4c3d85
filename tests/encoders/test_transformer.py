"""The Transformer encoder: torch's own layers, the batch a row is in, positions, and what it tells of its looks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from seq2see.encoders import Encoded, TransformerEncoder
from seq2see.encoders.transformer import TransformerEncoderSettings
from seq2see.encoders.transformer_layers import EncoderLayer
from seq2see.errors import UserError

IDS = torch.tensor([[5, 6, 7, 8], [8, 4, 0, 0], [0, 0, 0, 0]])
MASK = IDS > 0


def encoder(**given: Any) -> TransformerEncoder:
    torch.manual_seed(1)
    raw = {"size": 8, "layers": 2, "heads": 2, "feedforward": 12, "embedding": {"size": 8}, **given}
    return TransformerEncoder(TransformerEncoderSettings.model_validate(raw), symbols=10).eval()


def copied(layer: EncoderLayer) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=True)
    inward = layer.inward
    pairs = {
        theirs.self_attn.in_proj_weight: torch.cat([inward.W_q.weight, inward.W_k.weight, inward.W_v.weight]),
        theirs.self_attn.in_proj_bias: torch.cat([inward.W_q.bias, inward.W_k.bias, inward.W_v.bias]),
        theirs.self_attn.out_proj.weight: inward.W_o.weight,
        theirs.self_attn.out_proj.bias: inward.W_o.bias,
        theirs.linear1.weight: layer.feed.W_1.weight,
        theirs.linear1.bias: layer.feed.W_1.bias,
        theirs.linear2.weight: layer.feed.W_2.weight,
        theirs.linear2.bias: layer.feed.W_2.bias,
        theirs.norm1.weight: layer.norm_1.weight,
        theirs.norm1.bias: layer.norm_1.bias,
        theirs.norm2.weight: layer.norm_2.weight,
        theirs.norm2.bias: layer.norm_2.bias,
    }
    with torch.no_grad():
        for parameter, value in pairs.items():
            parameter.copy_(value)
    return theirs


@pytest.mark.parametrize("maps", [False, True])
def test_its_layers_are_torchs(maps: bool) -> None:
    made = encoder()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    states = made.entrance(IDS[:2])
    for layer in made.layers:
        states = copied(layer)(states, src_key_padding_mask=~MASK[:2])  # type: ignore[arg-type]
    wanted = made.norm(states)
    found = made(IDS[:2], MASK[:2], maps=maps).places.states
    torch.testing.assert_close(found[MASK[:2]], wanted[MASK[:2]], atol=1e-5, rtol=0)


def test_a_row_does_not_depend_on_the_batch_it_is_in() -> None:
    made = encoder()
    together: Encoded = made(IDS, MASK)
    for row, length in enumerate([4, 2]):
        alone = made(IDS[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(together.places.states[row, :length], alone.places.states[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(together.summary[row], alone.summary[0], atol=1e-5, rtol=0)
    assert (together.summary[2] == 0).all()
    torch.testing.assert_close(together.summary[1], together.places.states[1, :2].mean(0))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_order_matters_where_there_are_positions(positions: str) -> None:
    made = encoder(positions=positions)
    order = torch.tensor([2, 0, 3, 1])
    forwards, turned = made(IDS[:1], MASK[:1]), made(IDS[:1, order], MASK[:1])
    same = torch.allclose(forwards.places.states[:, order], turned.places.states, atol=1e-5)
    assert same == (positions == "none")
    assert forwards.places.layout.kind == made.layout == ("set" if positions == "none" else "tokens")


def test_learned_positions_end() -> None:
    with pytest.raises(UserError, match="3 learned positions, and the input has 4"):
        encoder(positions="learned", longest=3)(IDS, MASK)


def test_embeddings_of_another_size_are_projected() -> None:
    assert encoder().entrance.W_e is None
    made = encoder(embedding={"size": 3})
    assert made(IDS, MASK).places.states.shape == (3, 4, 8)
    assert encoder(embedding={"kind": "one-hot"})(IDS, MASK).places.states.shape == (3, 4, 8)


def test_it_tells_where_it_looked_when_asked() -> None:
    made = encoder()
    assert made(IDS, MASK).maps == {}
    told = made(IDS, MASK, maps=True)
    assert list(told.maps) == ["self-1", "self-2"]
    weights = told.maps["self-2"].weights
    assert weights.shape == (3, 2, 4, 4)
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(2, 4))
    torch.testing.assert_close(weights[1, :, :2, :2].sum(-1), torch.ones(2, 2))
    assert (weights[1, :, 2:] == 0).all()
    assert (weights[2] == 0).all()


def test_weights_are_in_the_order_in_which_they_are_read() -> None:
    """Runs are resumed by it, and a seed draws by it: models of before have it too."""
    parts = [name.partition(".")[0] for name, _ in encoder(positions="learned").named_parameters()]
    assert list(dict.fromkeys(parts)) == ["entrance", "layers", "norm"]


def test_every_parameter_learns() -> None:
    made = encoder(positions="learned", embedding={"size": 5})
    encoded = made(IDS, MASK)
    (encoded.places.states[MASK].square().mul(torch.arange(8)).sum() + encoded.summary.sum()).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if not name.endswith("W_k.bias"):  # adds the same to every energy of a query: softmax does not see it
            assert parameter.grad.abs().sum() > 0, name
