"""What cannot work, and what would do nothing, where numbers go in or come out."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.data.image_files import ImageInput
from seq2see.modalities.image import ImageOutput
from seq2see.modalities.vector import VectorInput, VectorOutput
from seq2see.recipe.schema import Recipe
from seq2see.settings.decoders import ReconstructionSettings
from seq2see.settings.encoders import ConvolutionalEncoderSettings, DenseEncoderSettings

MOVED = ("flip", "crop", "rotate", "shear", "stretch")
"""Changes of a picture that put its parts elsewhere."""


def hidden_of(recipe: Recipe) -> list[int]:
    """Sizes of the layers behind the code."""
    asked = recipe.decoder.reconstruction.hidden
    if isinstance(asked, list):
        return asked
    found = _dense(recipe)
    return [] if found is None else found.hidden[::-1]


def activation_of(recipe: Recipe) -> str:
    """What these layers give is passed through it."""
    asked = recipe.decoder.reconstruction.activation
    if asked != "mirrored":
        return asked
    found = _dense(recipe)
    return "relu" if found is None else found.activation


def channels_of(recipe: Recipe) -> list[int]:
    """Maps of each level of transposed convolutions; none where there is nothing to mirror."""
    asked = recipe.decoder.reconstruction.channels
    if isinstance(asked, list):
        return asked
    started = [recipe.encoder_of(name) for name in recipe.started_by]
    found = [one.channels[::-1] for one in started if isinstance(one, ConvolutionalEncoderSettings)]
    return found[0] if len(started) == len(found) == 1 else []


def output_of(recipe: Recipe) -> str:
    """The activation of the last layer."""
    usual = "logistic" if isinstance(recipe.output, ImageOutput) else "linear"
    return recipe.decoder.reconstruction.output or usual


def _dense(recipe: Recipe) -> DenseEncoderSettings | None:
    """The dense encoder that alone starts the decoder, if there is one."""
    started = [recipe.encoder_of(name) for name in recipe.started_by]
    found = [one for one in started if isinstance(one, DenseEncoderSettings)]
    return found[0] if len(started) == len(found) == 1 else None


def unworkable(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of vectors, of pictures to give, and of the decoder that makes them."""
    found = [*_looked_at(recipe), *_noise(recipe), *_read_densely(recipe)]
    settings, output = recipe.decoder.reconstruction, recipe.output
    if settings.output == "logistic" and isinstance(output, VectorOutput) and output.standardise:
        found.append(
            "decoder.reconstruction.output: logistic stays between 0 and 1, and standardised numbers do not; "
            "allowed: linear, or output.standardise false"
        )
    if isinstance(output, ImageOutput):
        found += _picture(recipe, output)
    return found


def _looked_at(recipe: Recipe) -> list[str]:
    found = []
    for name in recipe.looked_at:
        if name in recipe.inputs and recipe.one_place(name):
            what = "a vector" if isinstance(recipe.inputs[name], VectorInput) else "made into one vector"
            others = ", ".join(recipe.with_places)
            allowed = f"attention.over {others}" if others else "attention.score none"
            found.append(
                f"attention.over: '{name}' is {what}, a single place: every look at it is the same; allowed: "
                f"{allowed}, and decoder.start {name}"
            )
    return found


def _noise(recipe: Recipe) -> list[str]:
    found = []
    for name, given in _vectors(recipe):
        path, noise = f"inputs.{name}.noise", given.noise
        if noise.kind == "masking" and noise.amount >= 1:
            found.append(f"{path}.amount: masking {noise.amount:g} leaves nothing to read; allowed: above 0, below 1")
        elif noise.kind != "none" and not noise.amount:
            found.append(f"{path}.amount: 0 is no noise; allowed: above 0, or {path}.kind none")
    return found


def _read_densely(recipe: Recipe) -> list[str]:
    """Dense layers read pictures of one size."""
    found = []
    for name, given in recipe.inputs.items():
        settings = recipe.encoder_of(name)
        if not isinstance(given, ImageInput) or given.width:
            continue
        if isinstance(settings, DenseEncoderSettings) or getattr(settings, "places", "") == "flat":
            found.append(f"inputs.{name}.width: 0, and dense layers read pictures of one size; allowed: a width")
    return found


def _picture(recipe: Recipe, output: ImageOutput) -> list[str]:
    found, settings = [], recipe.decoder.reconstruction
    for name, given in recipe.inputs.items():
        if isinstance(given, ImageInput):
            found += [
                f"inputs.{name}.augment.{key}: the picture to give is not changed along with it; allowed: "
                f"{'false' if key == 'flip' else 0}"
                for key in MOVED
                if getattr(given.augment, key)
            ]
    if settings.pixels == "transposed":
        levels = channels_of(recipe)
        path = "decoder.reconstruction.channels"
        if not levels:
            found.append(f"{path}: mirrored needs one convolutional encoder in decoder.start; allowed: a list of sizes")
        elif any(side % (1 << len(levels)) for side in (output.height, output.width)):
            found.append(
                f"{path}: {len(levels)} levels double a side so often, and {output.height} x {output.width} pixels "
                f"do not come of that; allowed: fewer levels, or sides that {1 << len(levels)} divides"
            )
    return found


def pointless(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings without effect."""
    found: dict[str, str] = {}
    for name, given in _vectors(recipe):
        if given.noise.kind == "none" and given.noise.amount:
            found[f"inputs.{name}.noise.amount"] = "noise.kind is none"
    for name in recipe.inputs:
        settings, path = recipe.encoder_of(name), recipe.encoder_path(name)
        if isinstance(settings, DenseEncoderSettings) and not settings.hidden:
            found |= {
                f"{path}.{key}": f"{path}.hidden is empty"
                for key in ("activation", "dropout")
                if getattr(settings, key) != DenseEncoderSettings.model_fields[key].default
            }
    if recipe.decoder.kind == "reconstruction":
        found |= _reconstruction(recipe)
    return found


def _reconstruction(recipe: Recipe) -> dict[str, str]:
    settings, path = recipe.decoder.reconstruction, "decoder.reconstruction"
    reasons: dict[str, str] = {}
    if not hidden_of(recipe):
        reasons["activation"] = f"{path}.hidden has no layers"
    if not isinstance(recipe.output, ImageOutput):
        reasons["pixels"] = "the output is no picture"
    if settings.pixels != "transposed":
        reasons["channels"] = f"{path}.pixels is dense"
    else:
        reasons.pop("activation", None)
    fields = ReconstructionSettings.model_fields
    return {f"{path}.{key}": why for key, why in reasons.items() if getattr(settings, key) != fields[key].default}


def _vectors(recipe: Recipe) -> Iterator[tuple[str, VectorInput]]:
    for name, given in recipe.inputs.items():
        if isinstance(given, VectorInput):
            yield name, given
