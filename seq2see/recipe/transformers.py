"""Layers of self-attention: what follows where a recipe is silent, and what does not fit them."""

from __future__ import annotations

from seq2see.modalities.text import TextOutput
from seq2see.modalities.texts import TextsInput
from seq2see.recipe.schema import Recipe
from seq2see.settings.base import TextSettings
from seq2see.settings.decoders import DecoderSettings
from seq2see.settings.encoders import (
    EncoderSettings,
    HierarchicalEncoderSettings,
    TransformerEncoderSettings,
    VideoEncoderSettings,
)

MEMORY = 256
"""Symbols before its own that a step sees in a stream, where nothing is said."""

Looking = DecoderSettings | TransformerEncoderSettings | HierarchicalEncoderSettings | VideoEncoderSettings


def going_on(recipe: Recipe) -> Recipe:
    """A transformer that reads a stream: it sees so many symbols back, and knows how far each of them is.

    A stream has no beginning that positions could be counted from, and no end.
    """
    decoder = recipe.decoder
    if not recipe.data.stream or decoder.kind != "transformer":
        return recipe
    meant = unsaid(decoder.kind, stream=True)
    silent = {"memory": meant["memory"]} if decoder.memory is None else {}
    known = {} if "positions" in decoder.model_fields_set else {"positions": meant["positions"]}
    return recipe.model_copy(update={"decoder": decoder.model_copy(update=silent | known)})


def unsaid(kind: str, *, stream: bool) -> dict[str, str | int | None]:
    """What a decoder of that kind does where the recipe is silent, as far as that depends on what it reads."""
    if stream and kind == "transformer":
        return {"memory": MEMORY, "positions": "rotary"}
    fields = DecoderSettings.model_fields
    return {key: fields[key].default for key in ("memory", "positions")}


def misfitting(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of heads that do not divide their size, and of positions and memories that end too soon."""
    return [*_heads(recipe), *_endless(recipe), *_forgotten(recipe), *_lengths(recipe), *_searched(recipe)]


def _groups(recipe: Recipe) -> dict[str, Looking]:
    """All settings of layers of self-attention, by their path."""
    given: dict[str, EncoderSettings] = {"encoder": recipe.encoder} if recipe.inputs else {}
    given |= {f"inputs.{name}.encoder": one.encoder for name, one in recipe.inputs.items() if one.encoder is not None}
    groups: dict[str, Looking] = {path: one for path, one in given.items() if _looks_inward(one)}  # type: ignore[misc]
    if _writes(recipe):
        groups["decoder"] = recipe.decoder
    return groups


def _looks_inward(settings: EncoderSettings) -> bool:
    if isinstance(settings, HierarchicalEncoderSettings):
        return "transformer" in (settings.word_level, settings.sentence_level)
    if isinstance(settings, VideoEncoderSettings):
        return settings.over_time == "transformer"
    return isinstance(settings, TransformerEncoderSettings)


def _writes(recipe: Recipe) -> bool:
    """Whether a transformer writes symbol by symbol; one that gives a label has no symbols to look back at."""
    return recipe.decoder.kind == "transformer" and not recipe.output.one_step


def _heads(recipe: Recipe) -> list[str]:
    found = []
    for path, given in _groups(recipe).items():
        if given.size % given.heads:
            said = f"{given.heads} heads cannot share {given.size} numbers"
            found.append(f"{path}.heads: {said}; allowed: what divides {path}.size")
        elif given.positions == "rotary" and given.size // given.heads % 2:
            said = f"rotary turns pairs of numbers, and each of {given.heads} heads has {given.size // given.heads}"
            found.append(f"{path}.positions: {said}; allowed: sinusoidal, learned, none, or an even share")
    return found


def _endless(recipe: Recipe) -> list[str]:
    decoder = recipe.decoder
    if not recipe.data.stream or not _writes(recipe) or decoder.positions in ("rotary", "none"):
        return []
    said = f"{decoder.positions} ones are counted from a beginning, and a stream goes on without end"
    return [f"decoder.positions: {said}; allowed: rotary, none"]


def _forgotten(recipe: Recipe) -> list[str]:
    """A start that goes out of sight where nothing else tells what to write: the rest would be of no input."""
    memory = recipe.decoder.memory
    if memory is None or not _writes(recipe) or not recipe.started_by or recipe.looked_at or recipe.fed_every_step:
        return []
    started = ", ".join(recipe.started_by)
    said = f"{memory} symbols back, and the summary of {started} joins <sos> alone: a longer output would lose it"
    return [f"decoder.memory: {said}; allowed: attention, decoder.every_step, or none given (null), which sees all"]


def _lengths(recipe: Recipe) -> list[str]:
    """Texts that may be longer than learned positions reach, and positions that reach nowhere."""
    limits = _limits(recipe)
    found = {
        key: f"{key}: so few learned positions reach none; allowed: {2 if key == 'decoder.longest' else 1} and more"
        for _, longest, key in limits.values()
        if longest < 1
    }
    return list(found.values()) + [
        f"{path}: {most or 'no limit'}, and learned positions reach to {longest}; allowed: 1 to {longest}, or a larger "
        f"{key}"
        for path, (most, longest, key) in limits.items()
        if key not in found and not 0 < most <= longest
    ]


def _limits(recipe: Recipe) -> dict[str, tuple[int, int, str]]:
    """{path: (how long it may be, how long it could be, by which key)} of texts at whose positions P has rows."""
    limits: dict[str, tuple[int, int, str]] = {}
    groups = _groups(recipe)
    for name, given in recipe.inputs.items():
        path = recipe.encoder_path(name)
        settings = groups.get(path)
        if settings is None or settings.positions != "learned" or not isinstance(given, TextSettings):
            continue
        for key, most in _most(given, settings).items():
            limits[f"inputs.{name}.{key}"] = (most, settings.longest, f"{path}.longest")
    decoder = recipe.decoder
    learned = _writes(recipe) and decoder.positions == "learned" and not recipe.data.stream
    if isinstance(recipe.output, TextOutput) and learned:
        limits["output.max_length"] = (recipe.output.max_length, decoder.longest - 1, "decoder.longest")
    return limits


def _most(given: TextSettings, settings: Looking) -> dict[str, int]:
    """How many places a row that is looked at may have: symbols of a text, words of a sentence, sentences."""
    if not isinstance(settings, HierarchicalEncoderSettings):
        return {"max_length": given.max_length}
    found = {"max_length": given.max_length} if settings.word_level == "transformer" else {}
    if settings.sentence_level == "transformer" and isinstance(given, TextsInput):
        found["max_sentences"] = given.max_sentences
    return found


def _searched(recipe: Recipe) -> list[str]:
    decoder, most = recipe.decoder, recipe.search.max_length
    if not _writes(recipe) or decoder.positions != "learned" or most <= decoder.longest or decoder.longest < 2:
        return []
    allowed = f"1 to {decoder.longest}, or a larger decoder.longest"
    return [f"search.max_length: {most} is more than decoder.longest {decoder.longest}; allowed: {allowed}"]
