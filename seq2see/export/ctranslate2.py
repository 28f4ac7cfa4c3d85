"""CTranslate2: a Transformer that reads one text and writes another, for that engine's C++ decoding loop.

Weights are copied; what CTranslate2 has no place for is folded into them: projections of embeddings (W_e) into the
embeddings, those of contexts (W_c) into the heads' own W_o. Positions that are added become a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seq2see.attention import MultiHead, SelfAttention
from seq2see.data.tokens import LearnedSplitter
from seq2see.data.vocabulary import PAD, SOS, SPECIALS
from seq2see.decoders import SoftmaxHead
from seq2see.decoders.transformer import DecoderLayer, TransformerDecoder, TransformerDecoderSettings
from seq2see.embeddings import OneHot
from seq2see.encoders.layers import FeedForward
from seq2see.encoders.positional_input import TokenInput, sinusoids
from seq2see.encoders.transformer import TransformerEncoder
from seq2see.encoders.transformer_layers import EncoderLayer
from seq2see.errors import UserError, imported
from seq2see.files import new_folder, write_bytes
from seq2see.modalities.text import TextField
from seq2see.pipeline.bundle import Bundle
from seq2see.recipe import Recipe

POSITIONS = 1024
"""Rows of the table of sinusoidal positions, where the recipe allows no longer texts; CTranslate2 reads no more unless
it is asked to (`max_input_length`)."""
TOKENS, SEARCH = "tokens.json", "search.json"


def export(bundle: Bundle, out: Path, *, int8: bool) -> list[str]:
    """Write a folder that `ctranslate2.Translator` opens; returns notes for the user.

    Beside CTranslate2's own files it has the recipe's search as arguments of `translate_batch` (search.json), and how
    texts become symbols (tokens.json, with pieces and merges where there are any).
    """
    found = list(problems(bundle.recipe))
    if found:
        raise UserError("CTranslate2 cannot compute this model:\n" + "\n".join(f"  {line}" for line in found))
    specs = imported("ctranslate2.specs", extra="ctranslate2")
    spec = _model_spec(specs, bundle)
    spec.validate()
    spec.optimize(quantization="int8" if int8 else None)
    with new_folder(out) as folder:
        spec.save(str(folder))
        _write_json(folder / TOKENS, _tokens(bundle, folder))
        _write_json(folder / SEARCH, search_arguments(bundle.recipe))
    return list(_notes(bundle.recipe))


# ---------------------------------------------------------------- What can be exported


def problems(recipe: Recipe) -> Iterator[str]:
    """What CTranslate2 cannot compute, each with its key, its value and what is allowed."""
    if len(recipe.inputs) != 1:
        yield f"inputs: {', '.join(recipe.inputs) or 'none'}; allowed: one, of kind text"
    for name, column in recipe.inputs.items():
        yield from _only(f"inputs.{name}.kind", column.kind, "text")
        yield from _only(f"{recipe.encoder_path(name)}.kind", recipe.encoder_of(name).kind, "transformer")
    yield from _only("output.kind", recipe.output.kind, "text")
    yield from _only("decoder.kind", recipe.decoder.kind, "transformer")
    yield from _attention_problems(recipe)
    if isinstance(recipe.decoder, TransformerDecoderSettings):
        yield from _decoder_problems(recipe, recipe.decoder)
    yield from _only("search.ctc", recipe.search.ctc, 0)


def _attention_problems(recipe: Recipe) -> Iterator[str]:
    attention = recipe.attention
    yield from _only("attention.score", attention.score, "scaled-dot")
    if attention.score == "none":
        return
    yield from _only("attention.scope", attention.scope, "global")
    yield from _only("attention.normaliser", attention.normaliser, "softmax")
    yield from _only("attention.choice", attention.choice, "soft")
    yield from _only("attention.temperature", attention.temperature, 1)
    heads = getattr(recipe.decoder, "heads", attention.heads)
    if attention.heads != heads or heads < 2:
        yield f"attention.heads: {attention.heads}; allowed: 2 and more, as many as decoder.heads ({heads})"


def _decoder_problems(recipe: Recipe, decoder: TransformerDecoderSettings) -> Iterator[str]:
    yield from _only("decoder.start", ", ".join(recipe.started_by) or "none", "none")
    yield from _only("decoder.every_step", ", ".join(recipe.fed_every_step) or "none", "none")
    yield from _only("decoder.copy_from", recipe.copied_from or "none", "none")
    yield from _only("decoder.memory", decoder.memory or "none", "none")
    yield from _only("decoder.readout", decoder.readout, 0)
    width = getattr(decoder.embedding, "size", decoder.size)
    if decoder.tied and width != decoder.size:
        allowed = f"decoder.size ({decoder.size}), or decoder.tied: false"
        yield f"decoder.embedding.size: {width}, which ties a tanh layer to the output; allowed: {allowed}"


def _only(key: str, value: Any, allowed: Any) -> Iterator[str]:
    if value != allowed:
        yield f"{key}: {value}; allowed: {allowed}"


def _notes(recipe: Recipe) -> Iterator[str]:
    if recipe.search.language_model not in (None, "none"):
        yield f"search.language_model: {recipe.search.language_model} is ignored: CTranslate2 searches without one"
    if recipe.search.consensus:
        yield f"search.consensus: {recipe.search.consensus:g} is ignored: CTranslate2 ranks outputs by score alone"


# ---------------------------------------------------------------- What stands beside the weights


def search_arguments(recipe: Recipe) -> dict[str, Any]:
    """The recipe's search as arguments of `translate_batch`.

    CTranslate2 divides a score by the length without `<eos>` unless that is returned; ours counts it.
    """
    search = recipe.search
    return {
        "beam_size": search.beam,
        "length_penalty": search.length_penalty,
        "max_decoding_length": search.max_length,
        "min_decoding_length": search.min_length,
        "disable_unk": search.avoid_unknown,
        "replace_unknowns": search.replace_unknown,
        "suppress_sequences": [[SPECIALS[PAD]], [SPECIALS[SOS]]],
        "return_scores": True,
        "return_end_token": True,
    }


def _tokens(bundle: Bundle, folder: Path) -> dict[str, Any]:
    """How the texts of both sides are normalised and split; learned pieces are written to a file of their own."""
    (source,) = bundle.fields.inputs.values()
    sides = {"source": source, "target": bundle.fields.text_output}
    return {side: _text_settings(cast(TextField, field), folder / f"{side}.bpe.json") for side, field in sides.items()}


def _text_settings(field: TextField, path: Path) -> dict[str, Any]:
    settings = field.settings
    values: dict[str, Any] = {
        "tokens": settings.tokens,
        "case": settings.case,
        "unicode": settings.unicode,
        "punctuation": settings.punctuation == "keep",
        "max_length": settings.max_length,
    }
    if isinstance(field.splitter, LearnedSplitter):
        field.splitter.save(path)
        values["pieces"] = path.name
    return values


def _write_json(path: Path, value: Any) -> None:
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


# ---------------------------------------------------------------- Weights


def _model_spec(specs: Any, bundle: Bundle) -> Any:
    """The network as a `TransformerSpec`."""
    recipe, network = bundle.recipe, bundle.network
    ((name, source),) = bundle.fields.inputs.items()
    encoder, decoder = cast(TransformerEncoder, network.encoder(name)), cast(TransformerDecoder, network.decoder)
    spec = specs.TransformerSpec(_encoder_spec(specs, encoder, recipe), _decoder_spec(specs, decoder, recipe))
    _fill_output(spec.decoder.projection, cast(SoftmaxHead, network.head))
    for symbols, register in (
        (source.vocabulary.symbols, spec.register_source_vocabulary),
        (bundle.fields.text_output.vocabulary.symbols, spec.register_target_vocabulary),
    ):
        register(list(symbols))
    _, unknown, first, last = SPECIALS
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token, config.decoder_start_token = unknown, first, last, first
    config.add_source_bos = config.add_source_eos = False
    config.layer_norm_epsilon = encoder.norm.eps
    return spec


def _encoder_spec(specs: Any, encoder: TransformerEncoder, recipe: Recipe) -> Any:
    settings = encoder.settings
    spec = specs.TransformerEncoderSpec(settings.layers, settings.heads, pre_norm=True, **_rotary(settings.positions))
    longest = max(getattr(column, "max_length", 0) for column in recipe.inputs.values())
    spec.embeddings[0].weight = _embeddings(encoder.entrance)
    _fill_positions(spec, encoder.entrance, longest)
    for to, layer in zip(spec.layer, cast("Iterable[EncoderLayer]", encoder.layers), strict=True):
        _fill_self_attention(to.self_attention, layer.inward, layer.norm_1)
        _fill_feed_forward(to.ffn, layer.feed, layer.norm_2)
    _fill_norm(spec.layer_norm, encoder.norm)
    return spec


def _decoder_spec(specs: Any, decoder: TransformerDecoder, recipe: Recipe) -> Any:
    settings = decoder.settings
    part = settings.size // settings.heads
    spec = specs.TransformerDecoderSpec(
        settings.layers,
        settings.heads,
        pre_norm=True,
        head_dim=part,
        alignment_layer=-1,
        alignment_heads=settings.heads,  # the mean over heads, as in our looks
        **_rotary(settings.positions),
    )
    spec.embeddings.weight = _embeddings(decoder.entrance)
    _fill_positions(spec, decoder.entrance, recipe.search.max_length)
    for to, layer in zip(spec.layer, decoder.blocks, strict=True):
        if layer.norm_1 is None or layer.inward is None or layer.norm_2 is None:
            raise TypeError("a decoder of one step writes no text")
        _fill_self_attention(to.self_attention, layer.inward, layer.norm_1)
        _fill_cross_attention(to.attention, layer, layer.norm_2)
        _fill_feed_forward(to.ffn, layer.feed, layer.norm_3)
    _fill_norm(spec.layer_norm, decoder.norm)
    return spec


def _rotary(positions: str) -> dict[str, Any]:
    """Arguments of a stack whose queries and keys are rotated: all numbers of a head, in two halves."""
    return {"rotary_dim": 0, "rotary_interleave": False} if positions == "rotary" else {}


def _embeddings(entrance: TokenInput) -> NDArray[np.float32]:
    """The embedding of every symbol in the size of the layers, (symbols, size): CTranslate2 multiplies by sqrt(d)."""
    embedding = entrance.embedding
    if isinstance(embedding, OneHot):
        return _array(torch.eye(embedding.size) if entrance.W_e is None else entrance.W_e.weight.t())
    return _array(embedding.E if entrance.W_e is None else embedding.E @ entrance.W_e.weight.t())


def _fill_positions(spec: Any, entrance: TokenInput, longest: int) -> None:
    """The table of what is added at each position; zeros where nothing is, since CTranslate2 would add its own."""
    if entrance.positions == "rotary":
        if hasattr(spec, "position_encodings"):
            delattr(spec, "position_encodings")
        return
    if entrance.positions == "learned":
        spec.position_encodings.encodings = _array(entrance.P)
        return
    rows = max(longest + 1, POSITIONS)
    table = sinusoids(torch.arange(rows), entrance.size)
    spec.position_encodings.encodings = _array(table if entrance.positions == "sinusoidal" else table * 0)


def _fill_self_attention(to: Any, attention: SelfAttention, norm: nn.LayerNorm) -> None:
    _fill_norm(to.layer_norm, norm)
    _fill_joined(to.linear[0], attention.W_q, attention.W_k, attention.W_v)
    _fill_joined(to.linear[1], attention.W_o)


def _fill_cross_attention(to: Any, layer: DecoderLayer, norm: nn.LayerNorm) -> None:
    """Heads of the encoder's size, whose contexts W_c may bring to the decoder's."""
    ((_, attention),) = layer.looking.over.items()
    assert isinstance(attention, MultiHead)
    to.head_dim = np.dtype("int32").type(attention.W_k.out_features // attention.heads)
    _fill_norm(to.layer_norm, norm)
    _fill_joined(to.linear[0], attention.W_q)
    _fill_joined(to.linear[1], attention.W_k, attention.W_v)
    if layer.W_c is None:
        _fill_joined(to.linear[2], attention.W_o)
        return
    to.linear[2].weight = _array(layer.W_c.weight @ attention.W_o.weight)
    to.linear[2].bias = _array(layer.W_c.weight @ attention.W_o.bias + layer.W_c.bias)


def _fill_feed_forward(to: Any, feed: FeedForward, norm: nn.LayerNorm) -> None:
    _fill_norm(to.layer_norm, norm)
    _fill_joined(to.linear_0, feed.W_1)
    _fill_joined(to.linear_1, feed.W_2)


def _fill_joined(to: Any, *layers: nn.Linear) -> None:
    """One product for several layers of the same input."""
    to.weight = _array(torch.cat([layer.weight for layer in layers]))
    to.bias = _array(torch.cat([layer.bias for layer in layers]))


def _fill_norm(to: Any, norm: nn.LayerNorm) -> None:
    to.gamma, to.beta = _array(norm.weight), _array(norm.bias)


def _fill_output(to: Any, head: SoftmaxHead) -> None:
    to.weight, to.bias = _array(head.V), _array(head.c)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.detach().float().cpu().numpy().copy()
