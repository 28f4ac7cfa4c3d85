"""Documents read by self-attention: each level is torch's own, sentence by sentence, and nothing else is seen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.encoders import HierarchicalEncoder
from seq2see.encoders.base import Encoded
from seq2see.encoders.hierarchical import HierarchicalEncoderSettings
from seq2see.encoders.positional_input import sinusoids
from seq2see.encoders.transformer_layers import TransformerLevel
from seq2see.errors import UserError
from tests.encoders.test_hierarchical import DOCUMENTS, padded

SIZE, HEADS, INNER, EMBEDDING = 8, 2, 12, 6


def built(**settings: Any) -> HierarchicalEncoder:
    torch.manual_seed(1)
    given = {"levels": "transformer", "size": SIZE, "heads": HEADS, "feedforward": INNER, "layers": 2, **settings}
    made = HierarchicalEncoder(
        HierarchicalEncoderSettings.model_validate({"pooling_size": 3, "embedding": {"size": EMBEDDING}, **given}),
        symbols=10,
    )
    with torch.no_grad():
        for parameter in made.parameters():  # biases begin at zero, where nothing would tell them from none
            parameter += 0.2 * torch.randn_like(parameter)
    return made.eval()


def torchs(level: TransformerLevel, vectors: Tensor, *, scale: float) -> Tensor:
    """One row, without padding, through torch.nn.TransformerEncoderLayer with the level's weights."""
    x = vectors if level.placing.W_e is None else vectors @ level.placing.W_e.weight.T
    x = (x * scale + sinusoids(torch.arange(len(vectors)), SIZE))[None]
    for layer in level.layers:
        theirs = nn.TransformerEncoderLayer(SIZE, HEADS, INNER, 0.0, batch_first=True, norm_first=True).eval()
        inward = layer.inward
        theirs.self_attn.in_proj_weight.copy_(torch.cat([inward.W_q.weight, inward.W_k.weight, inward.W_v.weight]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([inward.W_q.bias, inward.W_k.bias, inward.W_v.bias]))
        theirs.self_attn.out_proj.load_state_dict(inward.W_o.state_dict())
        for their, our in [(theirs.norm1, layer.norm_1), (theirs.norm2, layer.norm_2),
                           (theirs.linear1, layer.feed.W_1), (theirs.linear2, layer.feed.W_2)]:  # fmt: skip
            their.load_state_dict(our.state_dict())
        x = theirs(x)
    out: Tensor = level.norm(x)[0]
    return out


def pooled(encoder: HierarchicalEncoder, states: Tensor, how: str, part: str) -> Tensor:
    if how == "attention":
        score = getattr(encoder, part).look.score
        energies = torch.tanh(states @ score.W_k.weight.T + score.W_k.bias) @ score.v.weight[0]
        return energies.softmax(0) @ states
    return states[-1] if how == "last" else states.mean(0)


@pytest.mark.parametrize("words", ["attention", "last", "mean"])
@pytest.mark.parametrize("pooling", ["attention", "last", "mean"])
@torch.no_grad()
def test_it_is_torchs_layers_over_each_sentence_and_over_the_sentences(words: str, pooling: str) -> None:
    encoder = built(words=words, pooling=pooling)
    made: Encoded = encoder(*padded(DOCUMENTS, more=2))
    for row, document in enumerate(DOCUMENTS):
        each = [torchs(encoder.word_layers, encoder.embedding(torch.tensor(one)), scale=SIZE**0.5) for one in document]
        vectors = torch.stack([pooled(encoder, one, words, "word_pooling") for one in each])
        states = torchs(encoder.sentence_layers, vectors, scale=1.0)
        torch.testing.assert_close(made.places.states[row, : len(document)], states, atol=1e-5, rtol=0)
        count = sum(map(len, document))
        torch.testing.assert_close(made.further["words"].states[row, :count], torch.cat(each), atol=1e-5, rtol=0)
        summary = pooled(encoder, states, pooling, "sentence_pooling")
        torch.testing.assert_close(made.summary[row], summary, atol=1e-5, rtol=0)


@pytest.mark.parametrize("levels", ["transformer", ["transformer", "recurrent"], ["recurrent", "transformer"]])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
@torch.no_grad()
def test_a_document_alone_is_read_as_in_a_batch(levels: str | list[str], positions: str) -> None:
    encoder = built(levels=levels, positions=positions, longest=9)
    together: Encoded = encoder(*padded(DOCUMENTS, more=2))
    for row, document in enumerate(DOCUMENTS):
        alone: Encoded = encoder(*padded([document]))
        count, words = len(document), sum(map(len, document))
        ours, theirs = together.places.states[row, :count], alone.places.states[0]
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        torch.testing.assert_close(together.summary[row], alone.summary[0], atol=1e-5, rtol=0)
        theirs = alone.further["words"].states[0]
        torch.testing.assert_close(together.further["words"].states[row, :words], theirs, atol=1e-5, rtol=0)


@torch.no_grad()
def test_levels_of_two_kinds_have_sizes_of_their_own() -> None:
    mixed = built(levels=["recurrent", "transformer"])
    made = mixed(*padded(DOCUMENTS))
    assert (made.further["words"].states.shape[-1], made.places.states.shape[-1]) == (2 * SIZE, SIZE)
    assert (mixed.size, mixed.further["words"].size, mixed.further["words"].inside.size) == (SIZE, 2 * SIZE, SIZE)
    other = built(levels=["transformer", "recurrent"])
    assert (other.size, other.further["words"].size) == (2 * SIZE, SIZE)


@torch.no_grad()
def test_words_of_one_sentence_see_those_of_no_other() -> None:
    encoder = built()
    other = [[[5, 6, 7], [4, 4]], *DOCUMENTS[1:]]
    ours, theirs = (encoder(*padded(one)) for one in (DOCUMENTS, other))
    first, second = (made.further["words"].states[0] for made in (ours, theirs))
    torch.testing.assert_close(first[:3], second[:3])
    assert not torch.allclose(first[3:5], second[3:5], atol=1e-3)
    assert not torch.allclose(ours.places.states[0, 0], theirs.places.states[0, 0], atol=1e-4)  # sentences do


@torch.no_grad()
def test_where_it_looked_is_told_where_it_is_asked_for() -> None:
    encoder = built()
    ids, mask = padded(DOCUMENTS, more=1)
    assert list(encoder(ids, mask).maps) == ["words"]
    made: Encoded = encoder(ids, mask, maps=True)
    assert list(made.maps) == ["words", "self-1", "self-2", "words.self-1", "words.self-2"]
    torch.testing.assert_close(made.summary, encoder(ids, mask).summary, atol=1e-5, rtol=0)
    sentences, words = made.maps["self-1"], made.maps["words.self-2"]
    assert sentences.weights.shape == (3, HEADS, 4, 4)
    torch.testing.assert_close(sentences.weights.sum(-1), made.places.mask[:, None].expand(-1, HEADS, -1).float())
    torch.testing.assert_close(words.weights.sum(-1), words.rows[:, None].expand(-1, HEADS, -1).float())
    parent = made.further["words"].parent
    assert parent is not None
    apart = parent[:, :, None] != parent[:, None, :]
    assert not words.weights.masked_select(apart[:, None]).any()
    rows = ids[mask.any(-1)]
    read = encoder.word_layers(encoder.embedding(rows), rows > 0, need_weights=True).weights["self-2"]
    torch.testing.assert_close(words.weights[0, :, 3:5, 3:5], read[1, :, :2, :2])
    torch.testing.assert_close(words.weights[2, :, 2:4, 2:4], read[5, :, :2, :2])


@pytest.mark.parametrize("words", ["attention", "last", "mean"])
def test_an_empty_document_gives_zeros_and_no_nan(words: str) -> None:
    encoder = built(words=words, pooling=words)
    made = encoder(*padded([[[5, 6]], []]), maps=True)
    assert made.places.mask.tolist() == [[True], [False]]
    assert not made.summary[1].any()
    (made.summary.sum() + made.places.states.sum() + made.further["words"].states.sum()).backward()
    assert all(one.grad is None or one.grad.isfinite().all() for one in encoder.parameters())


def test_every_parameter_learns() -> None:
    encoder = built(pooling="attention", positions="learned", longest=4)
    made = encoder(*padded(DOCUMENTS))
    made.summary.square().sum().backward()
    still = [name for name, one in encoder.named_parameters() if one.grad is None or not one.grad.any()]
    assert not still


def test_a_sentence_beyond_learned_positions_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"encoder\.longest: 3 learned positions, and the input has 4; .* max_length of"
    ):
        built(positions="learned", longest=3)(*padded(DOCUMENTS))
    with pytest.raises(
        UserError, match=r"encoder\.longest: 3 learned positions, and the input has 4; .* max_sentences"
    ):
        built(positions="learned", longest=3)(*padded([[[5], [6], [7], [8]]]))


def test_dropout_is_where_its_key_says() -> None:
    """On what enters a level and on what each part of a layer gives, not behind the last layer."""
    torch.manual_seed(2)
    settings = HierarchicalEncoderSettings(levels="transformer", size=SIZE, heads=HEADS, layers=1, dropout=0.999)
    level = TransformerLevel(settings, EMBEDDING)
    torch.nn.init.normal_(level.norm.bias)
    states = level.train()(torch.randn(20, 5, EMBEDDING), torch.ones(20, 5, dtype=torch.bool)).states
    assert (states == level.norm.bias).all(-1).float().mean() > 0.9
    said = HierarchicalEncoderSettings.model_fields["dropout"].description or ""
    assert "transformer levels: on what enters them and on what each part of a layer gives" in said
