"""What cannot work, and what would do nothing, where inputs are files."""

from __future__ import annotations

from collections.abc import Iterator

from seq2see.data.image_files import AugmentSettings, ImageInput
from seq2see.recipe.schema import Recipe
from seq2see.settings.encoders import FILED, SMALL, ConvolutionalEncoderSettings, unknown_backbone
from seq2see.settings.encoders import LEAST as HALVED

LEAST = 4
"""Pixels on a side without which there is nothing to see."""


def unreadable(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of pictures and of the networks that read them."""
    found = []
    for name, given, path, settings in _pictures(recipe):
        wrong = unknown_backbone(settings.backbone)
        if wrong is not None:
            found.append(f"{path}.backbone: {wrong}")
            continue
        large = settings.backbone != SMALL
        least = HALVED if large else LEAST
        if given.height < least or 0 < given.width < least:
            found.append(f"inputs.{name}.height: {given.height} x {given.width} pixels; allowed: at least {least} each")
        if large and given.colour == "grey":
            found.append(f"inputs.{name}.colour: {settings.backbone} was trained in colour; allowed: rgb")
        if settings.frozen and not given.width:
            found.append(
                f"inputs.{name}.width: 0, and kept maps have one size; allowed: a width, or {path}.tuned: true"
            )
        if settings.pooled and len(settings.pooled) != len(settings.channels):
            found.append(
                f"{path}.pooled: {len(settings.pooled)} given for {len(settings.channels)} levels of {path}.channels; "
                "allowed: one for each, or none"
            )
        if settings.backbone in FILED and settings.weights is None and not settings.tuned:
            found.append(
                f"{path}.weights: {settings.backbone} is frozen and has no weights; allowed: a file of weights, or "
                f"{path}.tuned: true"
            )
    return found


def unseen(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings without effect."""
    found = {
        f"inputs.{name}.direction": f"encoder {recipe.encoder_of(name).kind} makes one place of a picture"
        for name, given in recipe.inputs.items()
        if isinstance(given, ImageInput)
        and given.direction != "left-to-right"
        and recipe.encoder_of(name).layout == "vector"
    }
    for name, given, path, settings in _pictures(recipe):
        if settings.backbone == SMALL:
            found |= {
                f"{path}.{key}": "backbone small is trained with the rest"
                for key in ("tuned", "weights")
                if getattr(settings, key)
            }
        else:
            fields = type(settings).model_fields
            found |= {
                f"{path}.{key}": f"backbone {settings.backbone} is built as it is"
                for key in ("channels", "pooled")
                if getattr(settings, key) != fields[key].default
            }
        if settings.frozen:
            found |= {
                f"inputs.{name}.augment.{key}": f"{path}.tuned is false: each picture is read once, and its map kept"
                for key, value in given.augment
                if value != AugmentSettings.model_fields[key].default
            }
        if settings.layout == "vector":
            alone = f"{path}.places {settings.places}: a picture is one place"
            found |= {f"{path}.recurrent": alone} if settings.recurrent is not None else {}
    return found | _out_of_shape(recipe)


def _out_of_shape(recipe: Recipe) -> dict[str, str]:
    """What is said of the shape of pictures and does nothing, whoever reads them."""
    found: dict[str, str] = {}
    for name, given in recipe.inputs.items():
        if not isinstance(given, ImageInput):
            continue
        if not given.width and given.fit != "crop":
            found[f"inputs.{name}.fit"] = "with width 0 a picture keeps its proportions"
        if given.direction == "auto" and recipe.output.numeric:
            found[f"inputs.{name}.direction"] = f"{recipe.output.said} has no letters to tell it by"
        if given.width and given.augment.stretch and given.fit == "stretch":
            found[f"inputs.{name}.augment.stretch"] = f"every picture is brought to {given.width} pixels again"
        if given.width and given.widest:
            found[f"inputs.{name}.widest"] = f"every picture is {given.width} pixels wide"
    return found


def _pictures(recipe: Recipe) -> Iterator[tuple[str, ImageInput, str, ConvolutionalEncoderSettings]]:
    for name, given in recipe.inputs.items():
        settings = recipe.encoder_of(name)
        if isinstance(given, ImageInput) and isinstance(settings, ConvolutionalEncoderSettings):
            yield name, given, "encoder" if given.encoder is None else f"inputs.{name}.encoder", settings
