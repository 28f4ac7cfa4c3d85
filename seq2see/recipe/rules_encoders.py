"""Rules about encoders: scores they look back by, heads, positions, places cut out of files, and what stands idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from seq2see.data.image_files import ImageInput
from seq2see.data.sound_files import SoundInput
from seq2see.data.video_files import VideoInput
from seq2see.errors import nearest
from seq2see.modalities.text import TextOutput
from seq2see.modalities.texts import TextsInput
from seq2see.recipe.schema import Recipe
from seq2see.registry import Problem, rule
from seq2see.settings.attention import SCORES, reading_scores
from seq2see.settings.base import BROUGHT, EncoderSettings, Settings, TextSettings, no_effect
from seq2see.settings.decoders import TransformerDecoderSettings
from seq2see.settings.encoders import (
    SMALL,
    ConvolutionalEncoderSettings,
    DeepSetsEncoderSettings,
    DenseEncoderSettings,
    HierarchicalEncoderSettings,
    RecurrentEncoderSettings,
    TransformerEncoderSettings,
    TransformerLevelSettings,
    VideoEncoderSettings,
)

GROUPS = 8
"""Maps up to which each is normalised by itself; more are normalised in groups."""

Looking = TransformerDecoderSettings | TransformerEncoderSettings | TransformerLevelSettings


# --- Looking back while reading


@rule("self-attention-score")
def check_self_attention(recipe: Recipe) -> Iterator[Problem]:
    """A recurrent encoder looks back by a score that needs no more than the states written so far."""
    allowed = [*reading_scores(), "none"]
    for path, settings in ({"encoder": recipe.encoder} | recipe.encoders).items():
        if not isinstance(settings, RecurrentEncoderSettings) or settings.self_attention in allowed:
            continue
        score = settings.self_attention
        reason = f"unknown score '{score}'{nearest(score, allowed)}"
        if score in SCORES:
            reason = f"{score} goes by where places lie, and here they are still being written"
        yield Problem(f"{path}.self_attention", f"{reason}; allowed: {', '.join(allowed)}, {BROUGHT}")


# --- Layers of self-attention


def inward(recipe: Recipe) -> dict[str, Looking]:
    """All settings of layers of self-attention, by their path; not of a decoder that answers in one step."""
    groups: dict[str, Any] = {"encoder": recipe.encoder} if recipe.inputs else {}
    groups |= recipe.encoders
    groups |= {} if recipe.output.one_step else {"decoder": recipe.decoder}
    return {path: settings for path, settings in groups.items() if isinstance(settings, Looking)}


@rule("heads")
def check_heads(recipe: Recipe) -> Iterator[Problem]:
    """Heads divide their size, evenly where positions are rotary."""
    for path, settings in inward(recipe).items():
        if settings.size % settings.heads:
            said = f"{settings.heads} heads cannot share {settings.size} numbers; allowed: what divides {path}.size"
            yield Problem(f"{path}.heads", said)
        elif settings.positions == "rotary" and settings.size // settings.heads % 2:
            share = f"each of {settings.heads} heads has {settings.size // settings.heads}"
            allowed = "sinusoidal, learned, none, or an even share"
            yield Problem(f"{path}.positions", f"rotary turns pairs of numbers, and {share}; allowed: {allowed}")


@rule("learned-positions")
def check_learned_positions(recipe: Recipe) -> Iterator[Problem]:
    """Texts are not longer than learned positions reach, and positions reach somewhere."""
    limits = _limits(recipe)
    short = {key: 2 if key == "decoder.longest" else 1 for _, longest, key in limits.values() if longest < 1}
    for key, least in short.items():
        yield Problem(key, f"so few learned positions reach none; allowed: {least} and more")
    for path, (most, longest, key) in limits.items():
        if key not in short and not 0 < most <= longest:
            allowed = f"1 to {longest}, or a larger {key}"
            yield Problem(path, f"{most or 'no limit'}, and learned positions reach to {longest}; allowed: {allowed}")


def _limits(recipe: Recipe) -> dict[str, tuple[int, int, str]]:
    """{path: (how long it may be, how long it could be, by which key)} of texts at whose positions P has rows."""
    limits: dict[str, tuple[int, int, str]] = {}
    groups = inward(recipe)
    for name, read in recipe.inputs.items():
        path = recipe.encoder_path(name)
        settings = groups.get(path)
        if settings is None or settings.positions != "learned" or not isinstance(read, TextSettings):
            continue
        for key, most in _most(read, settings).items():
            limits[f"inputs.{name}.{key}"] = (most, settings.longest, f"{path}.longest")
    decoder = groups.get("decoder")
    if isinstance(recipe.output, TextOutput) and decoder and decoder.positions == "learned" and not recipe.data.stream:
        limits["output.max_length"] = (recipe.output.max_length, decoder.longest - 1, "decoder.longest")
    return limits


def _most(read: TextSettings, settings: Looking) -> dict[str, int]:
    """How many places a row that is looked at may have: symbols of a text, words of a sentence, sentences."""
    if not isinstance(settings, HierarchicalEncoderSettings):
        return {"max_length": read.max_length}
    found = {"max_length": read.max_length} if settings.word_level == "transformer" else {}
    if settings.sentence_level == "transformer" and isinstance(read, TextsInput):
        found["max_sentences"] = read.max_sentences
    return found


@rule("unlimited-positions", stage="no-effect")
def check_longest(recipe: Recipe) -> Iterator[Problem]:
    """Only learned positions have a limit."""
    for path, settings in inward(recipe).items():
        if settings.positions != "learned" and path in {"decoder", *recipe.encoders}:
            yield from no_effect(settings, path, ["longest"], f"positions {settings.positions} have no limit")


# --- Places cut out of sounds and pictures


@rule("units")
def check_units(recipe: Recipe) -> Iterator[Problem]:
    """Patches fit into their picture, and places know where they are."""
    for path, names in recipe.read_by.items():
        for name in names:
            settings, read = recipe.encoder_of(name), recipe.inputs[name]
            if not isinstance(settings, TransformerEncoderSettings):
                continue
            if isinstance(read, ImageInput):
                yield from _cut(path, name, read, settings)
            if settings.positions == "learned":
                yield from _unreached(path, name, read, settings)


def _cut(path: str, name: str, read: ImageInput, settings: TransformerEncoderSettings) -> Iterator[Problem]:
    if settings.positions == "rotary":
        said = f"rotary goes by how far apart places are in a line, and the patches of '{name}' lie in rows and columns"
        yield Problem(f"{path}.positions", f"{said}; allowed: sinusoidal, learned, none")
    down, across = settings.pixels or (1, 1)
    wide = read.width or across + 1
    if down > read.height or across > wide or (down, across) == (read.height, wide):
        size = f"{read.height} x {read.width}" if read.width else f"{read.height}"
        said = f"{down} x {across} pixels leave no two places in a picture of {size}; allowed: less"
        yield Problem(f"{path}.patch", said)


def _unreached(path: str, name: str, read: Any, settings: TransformerEncoderSettings) -> Iterator[Problem]:
    """Learned positions that end before the input does."""
    if isinstance(read, SoundInput):
        places = ceil(read.longest * 1000 / read.hop / (settings.stack or 1))
        key, allowed = f"inputs.{name}.longest", f"{read.longest:g} s"
    elif isinstance(read, ImageInput) and settings.pixels is not None:
        down, across = settings.pixels
        wide = read.width or read.widest
        places = max(ceil(read.height / down), ceil(wide / across))
        key, allowed = f"inputs.{name}.{'width' if read.width else 'widest'}", f"{wide} pixels"
        if not wide:
            said = f"learned positions end, and lines of '{name}' do not; allowed: a limit (inputs.{name}.widest)"
            yield Problem(f"{path}.longest", said)
            return
    else:
        return
    if places > settings.longest:
        said = f"{settings.longest} learned positions, and {allowed} ({key}) are {places} places"
        instead = f"{places} and more, or sinusoidal positions, which have no end"
        yield Problem(f"{path}.longest", f"{said}; allowed: {instead}")


FILES = {"sound", "series", "image"}
"""Inputs without symbols that a Transformer reads."""


@rule("unit-settings", stage="no-effect")
def check_unit_settings(recipe: Recipe) -> Iterator[Problem]:
    """Settings of a Transformer for another kind of input than those it reads."""
    for path, names in recipe.read_by.items():
        settings = recipe.encoders[path]
        if not isinstance(settings, TransformerEncoderSettings):
            continue
        kinds = {recipe.inputs[name].kind for name in names}
        reason = f"{', '.join(names)}: no {{}} is read"
        if not kinds & {"sound", "series"}:
            yield from no_effect(settings, path, ["stack"], reason.format("sound"))
        if "image" not in kinds:
            yield from no_effect(settings, path, ["patch"], reason.format("picture"))
        if kinds <= FILES:
            yield from no_effect(settings, path, ["embedding"], reason.format("symbol"))


# --- Levels of convolutions


@rule("shrinking")
def check_shrinking(recipe: Recipe) -> Iterator[Problem]:
    """Levels of convolutions halve a picture or a frame only while something of it is left to tell apart.

    A map of one cell that is normalised by itself is one number less itself: 0, whatever was seen. Where widths differ
    the narrowest picture counts, which is one cell wide.
    """
    for name, read in recipe.inputs.items():
        settings, path = recipe.encoder_of(name), recipe.encoder_path(name)
        if not isinstance(read, ImageInput | VideoInput):
            continue
        for key, maps, sizes in _levels(settings, read.height, read.width or 1):
            level = _lost(maps, sizes)
            if level is not None:
                few = f"at most {level} levels, or more than {GROUPS} maps" if level else f"more than {GROUPS} maps"
                size = f"{read.height} x {read.width}" if read.width else f"{read.height}"
                yield Problem(
                    f"{path}.{key}",
                    f"level {level + 1} of {len(maps)} has one cell left of the {size} pixels of '{name}', and each "
                    f"of its {maps[level]} maps is normalised by itself: nothing comes through; allowed: {few} there",
                )


Sizes = list[tuple[int, int]]
"""(rows, columns) that each level normalises."""


def _levels(settings: object, height: int, width: int) -> Iterator[tuple[str, list[int], Sizes]]:
    """(key, maps of each level, sizes) of each stack of levels. `channels` halve what was normalised, `motion` halves
    first."""
    if not isinstance(settings, ConvolutionalEncoderSettings | VideoEncoderSettings):
        return
    moving = settings.motion if isinstance(settings, VideoEncoderSettings) else []
    looks = not isinstance(settings, VideoEncoderSettings) or settings.appearance
    if looks and settings.backbone == SMALL:
        pooled = settings.pooled or ["both"] * len(settings.channels)
        yield "channels", settings.channels, halved(height, width, pooled)[:-1]
    if moving:
        yield "motion", moving, halved(height, width, ["both"] * len(moving))[1:]


def halved(rows: int, columns: int, pooled: Sequence[str]) -> Sizes:
    """The size before the first level, and after each.

    >>> halved(5, 4, ["both", "height"])
    [(5, 4), (3, 2), (2, 2)]
    """
    sizes = [(rows, columns)]
    for how in pooled:
        rows, columns = -(-rows // 2), -(-columns // 2) if how == "both" else columns
        sizes.append((rows, columns))
    return sizes


def _lost(maps: list[int], sizes: Sizes) -> int | None:
    """The first level, from 0, that normalises single numbers; None where there is none. (A wrong number of `pooled`
    is said elsewhere.)"""
    levels = enumerate(zip(maps, sizes, strict=False))
    return next((number for number, (wide, size) in levels if size == (1, 1) and wide in (1, 2, 4, GROUPS)), None)


@rule("dense-width")
def check_dense_width(recipe: Recipe) -> Iterator[Problem]:
    """Dense layers read pictures of one size."""
    for name, read in recipe.inputs.items():
        settings = recipe.encoder_of(name)
        if not isinstance(read, ImageInput) or read.width:
            continue
        if isinstance(settings, DenseEncoderSettings) or getattr(settings, "places", "") == "flat":
            yield Problem(f"inputs.{name}.width", "0, and dense layers read pictures of one size; allowed: a width")


# --- What stands idle


@rule("hidden-settings", stage="no-effect")
def check_hidden(recipe: Recipe) -> Iterator[Problem]:
    for path, settings in recipe.encoders.items():
        if isinstance(settings, DenseEncoderSettings) and not settings.hidden:
            yield from no_effect(settings, path, ["activation", "dropout"], f"{path}.hidden is empty")


@rule("pooling-settings", stage="no-effect")
def check_pooling(recipe: Recipe) -> Iterator[Problem]:
    """Pooling makes a summary, which somebody has to use."""
    used = {*recipe.started_by, *recipe.fed_every_step}
    for path, settings in recipe.encoders.items():
        if not isinstance(settings, HierarchicalEncoderSettings | DeepSetsEncoderSettings):
            continue
        read = [name for name in recipe.inputs if recipe.encoder_path(name) == path]
        if read and not used.intersection(read):
            reason = "no summary is used; name an input it reads in decoder.start or decoder.every_step"
            yield from no_effect(settings, path, ["pooling"], reason)
            if isinstance(settings, DeepSetsEncoderSettings) and settings.summary_layers:
                yield Problem(f"{path}.summary_layers", reason)
        if isinstance(settings, HierarchicalEncoderSettings) and "attention" not in (settings.words, settings.pooling):
            yield from no_effect(settings, path, ["pooling_size"], "no states are weighed")


@rule("unused-encoder", stage="no-effect")
def check_unused_encoder(recipe: Recipe) -> Iterator[Problem]:
    """The recipe's own `encoder` where no input is read by it.

    Inputs' own encoders of the same kind have taken from it what they do not say themselves: what one of them has too
    did something.
    """
    settings, own = recipe.encoder, recipe.encoders
    if "encoder" in own:
        return
    reason = f"every input has an encoder of its own ({', '.join(own)})" if own else "there are no inputs"
    alike = [one for one in own.values() if one.kind == settings.kind]
    if not alike and settings.kind != EncoderSettings().kind:
        yield Problem("encoder", f"{reason}, so that nothing is read by a {settings.kind} one")
        return
    for path in _differing("encoder", settings, alike):
        yield Problem(path, reason)


def _differing(path: str, settings: Settings, others: Sequence[Settings]) -> Iterator[str]:
    for key, field in type(settings).model_fields.items():
        value, theirs = getattr(settings, key), [getattr(one, key, None) for one in others]
        if isinstance(value, Settings):
            alike = [one for one in theirs if isinstance(one, Settings)]
            yield from _differing(f"{path}.{key}", value, alike)
        elif value != field.get_default(call_default_factory=True) and value not in theirs:
            yield f"{path}.{key}"
