"""What follows from the rest of a recipe and need not be written down."""

from __future__ import annotations

import copy
from typing import Any

from seq2see.data.image_files import ImageInput
from seq2see.data.series_files import SeriesInput
from seq2see.data.sound_files import SoundInput
from seq2see.modalities import OutputSettings
from seq2see.modalities.image import ImageOutput
from seq2see.recipe.kinds import SILENT, Raw, without_foreign_keys
from seq2see.recipe.schema import Recipe
from seq2see.recipe.sets import completed
from seq2see.registry import Problem
from seq2see.settings.decoders import (
    ReconstructionDecoderSettings,
    ReconstructionSettings,
    TransformerDecoderSettings,
    writers_of,
)
from seq2see.settings.encoders import (
    USUAL,
    ConvolutionalEncoderSettings,
    DenseEncoderSettings,
    TransformerEncoderSettings,
)

USUAL_KINDS = {"encoder": "recurrent", "embedding": "learned"}
"""The kind of a group of keys that does not say it."""

SYMBOLS = ("recurrent", "hierarchical")
"""Encoders that read symbols: no default for an input that is a file."""

BOTH = "transformer"
"""Reads symbols where some input of the recipe has them, and files otherwise."""

MEMORY = 256
"""Symbols before its own that a step of a transformer sees in a stream, where nothing is said."""

FRAMES = 4
"""Frames of a sound in a place of a transformer, where nothing is said: as many as two halvings of a pyramid leave."""

PATCHES = (16, 8, 4, 2, 1)
"""Pixels of a patch's side where nothing is said: the largest of which there are `ACROSS` to the shorter side."""

ACROSS = 6
STRIPS = 8
"""Lines of text, whose width is not known before: strips as high as the line and this much less wide."""


# --- Before types: what a raw recipe means


def parsed(raw: Raw) -> tuple[Recipe, list[Problem]]:
    """The complete recipe, and its keys that other kinds have; pydantic's ValidationError where a type is wrong."""
    raw, problems = without_foreign_keys(implied(raw))
    told = {problem.path for problem in problems}
    problems = [one for one in problems if not _inherited(one.path, told)]
    recipe = Recipe.model_validate(raw)
    if not recipe.with_places and "score" not in recipe.attention.model_fields_set:
        attention = raw.get("attention", {})
        raw, switched_off = without_foreign_keys(raw | {"attention": {**attention, "score": "none"}})
        recipe, problems = Recipe.model_validate(raw), problems + switched_off
    return resolved(recipe), problems


def _inherited(path: str, told: set[str]) -> bool:
    """Whether an input's encoder has that key from the recipe's, of which it is said already."""
    return path.startswith("inputs.") and f"encoder.{path.partition('.encoder.')[2]}" in told


def implied(raw: Raw) -> Raw:
    """A copy in which an input's own `encoder` says only how it differs from the recipe's, which fills in the rest; the
    decoder is of the kind that writes such an output.

    >>> implied({"encoder": {"cell": "lstm"}, "inputs": {"x": {"encoder": {"size": 8}}}})["inputs"]["x"]["encoder"]
    {'cell': 'lstm', 'size': 8}
    """
    raw = copy.deepcopy(raw)
    common, inputs = raw.get("encoder"), raw.get("inputs")
    if isinstance(inputs, dict):
        for settings in inputs.values():
            _read_as_usual(settings, common, symbols=any(map(_reads_symbols, inputs.values())))
    if isinstance(common, dict) and isinstance(inputs, dict):
        for settings in inputs.values():
            if isinstance(settings, dict) and isinstance(settings.get("encoder"), dict):
                settings["encoder"] = _over(common, settings["encoder"])
    output, decoder = raw.get("output", {}), raw.get("decoder", {})
    writers = writers_of(kind_word(output, SILENT)) if isinstance(output, dict) else []
    if writers and isinstance(decoder, dict) and "kind" not in decoder:
        raw["decoder"] = {"kind": writers[0], **decoder}
    return raw


def kind_word(settings: Raw, default: str = "") -> str:
    """The `kind` of a group of keys; the default where it has none, nothing where it is no word."""
    kind = settings.get("kind", default)
    return kind if isinstance(kind, str) else ""


def _reads_symbols(settings: Any) -> bool:
    """Whether an input has symbols, and the recipe's own encoder to read them."""
    if not isinstance(settings, dict) or kind_word(settings) in USUAL:
        return False
    own = settings.get("encoder")
    return not isinstance(own, dict) or "kind" not in own


def _read_as_usual(settings: Any, common: Any, *, symbols: bool) -> None:
    """A file has an encoder of the kind that reads such files, where the recipe's own is one for texts; symbols:
    whether it has any to read."""
    usual = USUAL.get(kind_word(settings)) if isinstance(settings, dict) else None
    own = settings.get("encoder") if usual else None
    if usual is None or not isinstance(own, dict | None) or "kind" in (own or {}):
        return
    silent = USUAL_KINDS["encoder"]
    kind = common.get("kind", silent) if isinstance(common, dict) else silent
    if kind in SYMBOLS or (kind == BOTH and (symbols or usual == USUAL["vector"])):
        settings["encoder"] = {"kind": usual, **(own or {})}


def _over(common: Raw, own: Raw, *, key: str = "encoder") -> Raw:
    """Settings of the same kind are filled in, groups of keys inside them too; those of another kind stand alone."""
    kind = common.get("kind", USUAL_KINDS.get(key))
    if own.get("kind", kind) != kind:
        return own
    inner = {
        name: _over(common[name], value, key=name)
        for name, value in own.items()
        if isinstance(common.get(name), dict) and isinstance(value, dict)
    }
    return {**common, **own, **inner}


# --- With types: what a recipe that is silent means


def resolved(recipe: Recipe) -> Recipe:
    """The recipe made complete where it is silent. A contradiction that was asked for stays as it is, to be refused.

    A picture that comes out is as large as the one that goes in; all inputs with places are looked at; without
    attention, `start` gives the decoder every input that nothing else gives it, unless it was said to be none; encoders
    of sets have no positions; a transformer that reads a stream looks back so far, and one that reads a file has a
    place for so much of it.

    >>> resolved(Recipe(inputs={"x": {}})).attention.over
    ['x']
    """
    recipe = recipe.model_copy(update={"output": _as_large(recipe.output, recipe)})
    attention, decoder = recipe.attention, recipe.decoder
    if attention.score != "none" and attention.over is None:
        attention = attention.model_copy(update={"over": recipe.looked_at})
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if attention.score == "none" and unused and decoder.start != "none":
        decoder = decoder.model_copy(update={"start": [*recipe.started_by, *unused]})
    recipe = recipe.model_copy(update={"attention": attention, "decoder": decoder})
    return _with_memory(_with_units(completed(recipe)))


def _as_large(output: OutputSettings, recipe: Recipe) -> OutputSettings:
    """A picture to give, of the size and colour of the first one that goes in, as far as the recipe does not say."""
    first = next((one for one in recipe.inputs.values() if isinstance(one, ImageInput)), None)
    if not isinstance(output, ImageOutput) or first is None:
        return output
    keys = ("height", "width", "fit", "colour") if first.width else ("height", "colour")
    return output.model_copy(update={key: getattr(first, key) for key in keys if key not in output.model_fields_set})


def _with_memory(recipe: Recipe) -> Recipe:
    """A transformer that reads a stream: it sees so many symbols back, and knows how far each of them is.

    A stream has no beginning that positions could be counted from, and no end.
    """
    decoder = recipe.decoder
    if not recipe.data.stream or not isinstance(decoder, TransformerDecoderSettings):
        return recipe
    meant = stream_defaults(decoder.kind, stream=True)
    silent = {"memory": meant["memory"]} if decoder.memory is None else {}
    known = {} if "positions" in decoder.model_fields_set else {"positions": meant["positions"]}
    return recipe.model_copy(update={"decoder": decoder.model_copy(update=silent | known)})


def stream_defaults(kind: str, *, stream: bool) -> dict[str, str | int | None]:
    """What a decoder of that kind does where the recipe is silent, as far as that depends on what it reads."""
    if stream and kind == "transformer":
        return {"memory": MEMORY, "positions": "rotary"}
    fields = TransformerDecoderSettings.model_fields
    return {key: fields[key].default for key in ("memory", "positions")}


def _with_units(recipe: Recipe) -> Recipe:
    """The recipe with `stack` and `patch` said wherever a Transformer reads a sound or a picture.

    Inputs that share an encoder and would have other places each get settings of their own.
    """
    for path, names in recipe.read_by.items():
        settings = recipe.encoder_of(names[0])
        if not isinstance(settings, TransformerEncoderSettings):
            continue
        meant = {name: _units(recipe.inputs[name], settings) for name in names}
        alike = all(one == meant[names[0]] for one in meant.values())
        for name, units in ({names[0]: meant[names[0]]} if alike else meant).items():
            rest = {} if alike else {"stack": None, "patch": None}
            if units:
                where = path if alike else f"inputs.{name}.encoder"
                recipe = recipe.with_encoder(where, settings.model_copy(update=rest | units))
    return recipe


def _units(read: Any, settings: TransformerEncoderSettings) -> dict[str, Any]:
    if isinstance(read, SoundInput | SeriesInput):
        return {"stack": settings.stack or FRAMES}
    return {"patch": settings.patch or _patch(read)} if isinstance(read, ImageInput) else {}


def _patch(read: ImageInput) -> int | tuple[int, int]:
    if not read.width:
        return read.height, max(read.height // STRIPS, 1)
    shorter = min(read.height, read.width)
    return next((side for side in PATCHES if side * ACROSS <= shorter), PATCHES[-1])


# --- What a decoder that gives numbers mirrors


def reconstruction_of(recipe: Recipe) -> ReconstructionSettings:
    """How the decoder makes numbers of a code; the defaults for a decoder of another kind."""
    decoder = recipe.decoder
    return decoder.reconstruction if isinstance(decoder, ReconstructionDecoderSettings) else ReconstructionSettings()


def hidden_of(recipe: Recipe) -> list[int]:
    """Sizes of the layers behind the code."""
    hidden = reconstruction_of(recipe).hidden
    if isinstance(hidden, list):
        return hidden
    dense = _dense(recipe)
    return [] if dense is None else dense.hidden[::-1]


def activation_of(recipe: Recipe) -> str:
    """What these layers give is passed through it."""
    activation = reconstruction_of(recipe).activation
    if activation != "mirrored":
        return activation
    dense = _dense(recipe)
    return "relu" if dense is None else dense.activation


def channels_of(recipe: Recipe) -> list[int]:
    """Maps of each level of transposed convolutions; none where there is nothing to mirror."""
    channels = reconstruction_of(recipe).channels
    if isinstance(channels, list):
        return channels
    started = [recipe.encoder_of(name) for name in recipe.started_by]
    found = [one.channels[::-1] for one in started if isinstance(one, ConvolutionalEncoderSettings)]
    return found[0] if len(started) == len(found) == 1 else []


def output_of(recipe: Recipe) -> str:
    """The activation of the last layer."""
    usual = "logistic" if isinstance(recipe.output, ImageOutput) else "linear"
    return reconstruction_of(recipe).output or usual


def _dense(recipe: Recipe) -> DenseEncoderSettings | None:
    """The dense encoder that alone starts the decoder, if there is one."""
    started = [recipe.encoder_of(name) for name in recipe.started_by]
    found = [one for one in started if isinstance(one, DenseEncoderSettings)]
    return found[0] if len(started) == len(found) == 1 else None
