"""Kinds of inputs and outputs: one file for each, with its settings, how it is read, batched, shown and hidden."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field as Setting
from pydantic import Tag

from seq2see.data.image_files import ImageInput
from seq2see.data.series_files import SeriesInput, SeriesOutput
from seq2see.data.sound_files import SoundInput
from seq2see.data.video_files import VideoInput
from seq2see.modalities.base import Field, field_of
from seq2see.modalities.image import ImageField, ImageOutput, ImageOutputField
from seq2see.modalities.label import LabelField, LabelOutput
from seq2see.modalities.series import SeriesField
from seq2see.modalities.set import SetField, SetInput
from seq2see.modalities.sound import SoundField
from seq2see.modalities.text import TextField, TextInput, TextOutput
from seq2see.modalities.texts import TextsField, TextsInput
from seq2see.modalities.vector import VectorField, VectorInput, VectorOutput
from seq2see.modalities.video import VideoField
from seq2see.settings.base import by_kind

InputSettings = Annotated[
    Annotated[TextInput, Tag("text")]
    | Annotated[TextsInput, Tag("texts")]
    | Annotated[SetInput, Tag("set")]
    | Annotated[ImageInput, Tag("image")]
    | Annotated[SoundInput, Tag("sound")]
    | Annotated[VideoInput, Tag("video")]
    | Annotated[VectorInput, Tag("vector")]
    | Annotated[SeriesInput, Tag("series")],
    by_kind("text"),
]

OutputSettings = Annotated[
    TextOutput | LabelOutput | VectorOutput | ImageOutput | SeriesOutput, Setting(discriminator="kind")
]

__all__ = [
    "Field",
    "ImageField",
    "ImageOutputField",
    "InputSettings",
    "LabelField",
    "OutputSettings",
    "SeriesField",
    "SetField",
    "SoundField",
    "TextField",
    "TextsField",
    "VectorField",
    "VideoField",
    "field_of",
]
