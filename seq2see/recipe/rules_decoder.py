"""Rules about decoders: what they can write, what conditions them, sizes that meet, and codes that become numbers."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.data.image_files import ImageInput
from seq2see.modalities.image import ImageOutput
from seq2see.modalities.vector import VectorInput, VectorOutput
from seq2see.recipe.resolve import channels_of, hidden_of, reconstruction_of
from seq2see.recipe.rules_encoders import inward
from seq2see.recipe.schema import Recipe
from seq2see.registry import Problem, rule
from seq2see.settings.base import BROUGHT, no_effect
from seq2see.settings.decoders import (
    LabelDecoderSettings,
    ReconstructionDecoderSettings,
    SymbolSettings,
    TransformerDecoderSettings,
    writers_of,
)

MOVED = ("flip", "crop", "rotate", "shear", "stretch")
"""Changes of a picture that put its parts elsewhere."""


@rule("decoder")
def check_decoder(recipe: Recipe) -> Iterator[Problem]:
    """A decoder writes such an output; what is tied has weights; two summaries are compared."""
    decoder = recipe.decoder
    if recipe.output.kind not in decoder.writes:
        allowed = f"allowed: {', '.join(writers_of(recipe.output.kind))}, {BROUGHT}"
        yield Problem("decoder.kind", f"{decoder.kind} cannot write an output of kind {recipe.output.kind}; {allowed}")
    if isinstance(decoder, SymbolSettings) and decoder.tied and decoder.embedding.kind == "one-hot":
        yield Problem("decoder.tied", "a one-hot embedding has no weights to tie; allowed: false")
    if decoder.join == "compare":
        for key, names in (("start", recipe.started_by), ("every_step", recipe.fed_every_step)):
            if names and len(names) != 2:
                yield Problem("decoder.join", f"compare needs two inputs in decoder.{key}, got {len(names)}")


@rule("conditioned", droppable=True)
def unconditioned(recipe: Recipe) -> Iterator[Problem]:
    """With attention off, `start: none` leaves the decoder without some of the inputs."""
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if recipe.attention.score == "none" and recipe.decoder.start == "none" and unused:
        lost = ", ".join(unused)
        instead = ", or decoder.every_step" if not recipe.output.one_step else ""
        said = f"with attention off, none leaves the decoder nothing of {lost}"
        yield Problem("decoder.start", f"{said}; allowed: {lost}{instead}, or attention")


@rule("summary-sizes")
def check_sizes(recipe: Recipe) -> Iterator[Problem]:
    """Summaries that are copied or compared are of the size they meet."""
    decoder = recipe.decoder
    sizes = {name: recipe.encoder_of(name).summary_size for name in recipe.inputs}
    summaries = {name: size for name, size in sizes.items() if size is not None}
    if len(summaries) < len(sizes) or decoder.own:
        return
    copied = decoder.start_by == "copy" and not isinstance(decoder, ReconstructionDecoderSettings)
    if copied and recipe.started_by:
        joined = sum(summaries[name] for name in recipe.started_by) * (2 if decoder.join == "compare" else 1)
        if joined != decoder.size:
            said = f"copy needs decoder.size equal to the summary's size, got {decoder.size} and {joined}"
            yield Problem("decoder.start_by", f"{said}; use dense, or set decoder.size={joined}")
    if decoder.join == "compare":
        for names in (recipe.started_by, recipe.fed_every_step):
            if len(names) == 2 and summaries[names[0]] != summaries[names[1]]:
                first, second = names
                said = f"got {summaries[first]} ({first}) and {summaries[second]} ({second})"
                yield Problem("decoder.join", f"compare needs summaries of one size, {said}")


@rule("decoder-settings", stage="no-effect")
def check_decoder_settings(recipe: Recipe) -> Iterator[Problem]:
    decoder, path = recipe.decoder, "decoder"
    if isinstance(decoder, LabelDecoderSettings | ReconstructionDecoderSettings) and not recipe.looked_at:
        reason = f"without attention a {decoder.kind} decoder has its state alone"
        yield from no_effect(decoder, path, ["output"], reason)
    if isinstance(decoder, ReconstructionDecoderSettings) and recipe.started_by:
        yield from no_effect(decoder, path, ["size", "start_by"], "it starts from the code as it is")
    if isinstance(decoder, TransformerDecoderSettings) and recipe.output.one_step:
        yield from _answered(decoder)
    if not recipe.started_by:
        yield from no_effect(decoder, path, ["start_by"], "decoder.start is none")
        if not recipe.fed_every_step:
            yield from no_effect(decoder, path, ["join"], "no summaries are joined")
    if isinstance(decoder, SymbolSettings) and decoder.tied:
        yield from no_effect(decoder, path, ["readout"], "tied: the readout has the size of the embedding")


def _answered(decoder: TransformerDecoderSettings) -> Iterator[Problem]:
    """A transformer that answers in one step: its layers look at places and think, there is nothing written before."""
    alone = "a label is decoded in one step, with no symbol before it to look at"
    keys = ["positions", "longest", "memory", "embedding", "tied"]
    yield from no_effect(decoder, "decoder", keys, alone)
    yield from no_effect(decoder, "decoder", ["heads"], f"{alone}; attention.heads are those of its looks")
    started = "there is one step: decoder.start says what it begins with"
    yield from no_effect(decoder, "decoder", ["every_step"], started)


# --- A transformer that writes


@rule("stream-positions")
def check_stream_positions(recipe: Recipe) -> Iterator[Problem]:
    """A stream has no beginning that positions could be counted from."""
    decoder = inward(recipe).get("decoder")
    if decoder is not None and recipe.data.stream and decoder.positions not in ("rotary", "none"):
        said = f"{decoder.positions} ones are counted from a beginning, and a stream goes on without end"
        yield Problem("decoder.positions", f"{said}; allowed: rotary, none")


@rule("memory")
def check_memory(recipe: Recipe) -> Iterator[Problem]:
    """A start does not go out of sight where nothing else tells what to write: the rest would be of no input."""
    decoder = inward(recipe).get("decoder")
    memory = getattr(decoder, "memory", None)
    if memory is None or not recipe.started_by or recipe.looked_at or recipe.fed_every_step:
        return
    started = ", ".join(recipe.started_by)
    said = f"{memory} symbols back, and the summary of {started} joins <sos> alone: a longer output would lose it"
    allowed = "attention, decoder.every_step, or none given (null), which sees all"
    yield Problem("decoder.memory", f"{said}; allowed: {allowed}")


@rule("search-positions")
def check_search_positions(recipe: Recipe) -> Iterator[Problem]:
    """Outputs that are searched for are not longer than learned positions reach."""
    decoder, most = inward(recipe).get("decoder"), recipe.search.max_length
    if decoder is None or decoder.positions != "learned" or most <= decoder.longest or decoder.longest < 2:
        return
    allowed = f"1 to {decoder.longest}, or a larger decoder.longest"
    yield Problem("search.max_length", f"{most} is more than decoder.longest {decoder.longest}; allowed: {allowed}")


# --- Vectors and pictures that come out


@rule("noise")
def check_noise(recipe: Recipe) -> Iterator[Problem]:
    """Noise leaves something to read, and is some."""
    for name, settings in recipe.inputs.items():
        if not isinstance(settings, VectorInput):
            continue
        path, noise = f"inputs.{name}.noise", settings.noise
        if noise.kind == "masking" and noise.amount >= 1:
            said = f"masking {noise.amount:g} leaves nothing to read; allowed: above 0, below 1"
            yield Problem(f"{path}.amount", said)
        elif noise.kind != "none" and not noise.amount:
            yield Problem(f"{path}.amount", f"0 is no noise; allowed: above 0, or {path}.kind none")


@rule("noise-settings", stage="no-effect")
def check_noise_settings(recipe: Recipe) -> Iterator[Problem]:
    for name, settings in recipe.inputs.items():
        if isinstance(settings, VectorInput) and settings.noise.kind == "none":
            yield from no_effect(settings.noise, f"inputs.{name}.noise", ["amount"], "noise.kind is none")


@rule("reconstruction")
def check_reconstruction(recipe: Recipe) -> Iterator[Problem]:
    """Numbers that come out can be as they should, and pictures as large."""
    settings, output, path = reconstruction_of(recipe), recipe.output, "decoder.reconstruction"
    if settings.output == "logistic" and isinstance(output, VectorOutput) and output.standardise:
        said = "logistic stays between 0 and 1, and standardised numbers do not"
        yield Problem(f"{path}.output", f"{said}; allowed: linear, or output.standardise false")
    if not isinstance(output, ImageOutput):
        return
    pictures = {name: read for name, read in recipe.inputs.items() if isinstance(read, ImageInput)}
    for name, read in pictures.items():
        for key in MOVED:
            if getattr(read.augment, key):
                allowed = "false" if key == "flip" else 0
                said = f"the picture to give is not changed along with it; allowed: {allowed}"
                yield Problem(f"inputs.{name}.augment.{key}", said)
    if settings.pixels == "transposed":
        levels = channels_of(recipe)
        if not levels:
            said = "mirrored needs one convolutional encoder in decoder.start; allowed: a list of sizes"
            yield Problem(f"{path}.channels", said)
        elif any(side % (1 << len(levels)) for side in (output.height, output.width)):
            yield Problem(
                f"{path}.channels",
                f"{len(levels)} levels double a side so often, and {output.height} x {output.width} pixels do not come "
                f"of that; allowed: fewer levels, or sides that {1 << len(levels)} divides",
            )


@rule("reconstruction-settings", stage="no-effect")
def check_reconstruction_settings(recipe: Recipe) -> Iterator[Problem]:
    if not isinstance(recipe.decoder, ReconstructionDecoderSettings):
        return
    settings, path = recipe.decoder.reconstruction, "decoder.reconstruction"
    if not isinstance(recipe.output, ImageOutput):
        yield from no_effect(settings, path, ["pixels"], "the output is no picture")
    if settings.pixels != "transposed":
        yield from no_effect(settings, path, ["channels"], f"{path}.pixels is dense")
        if not hidden_of(recipe):
            yield from no_effect(settings, path, ["activation"], f"{path}.hidden has no layers")
