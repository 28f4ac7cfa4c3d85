"""A Transformer fits every recipe that ships, as decoder and as encoder: one loss, one search, one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seq2see.data.batches import Batch, Frames, Labels, Nested, Numbers, Target, pad_lists
from seq2see.errors import UserError
from seq2see.memory import Copyable
from seq2see.modalities.image import Pictures
from seq2see.modalities.video import Clips
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import Recipe, load_recipe, shipped
from seq2see.search import Hypothesis, SearchOptions, classify, score_targets, search
from tests.objectives import objective_of

SYMBOLS, LABELS = 12, 4
ROWS = [[4, 5, 6, 7, 8], [9, 4], [7, 7, 10]]
"""Three inputs of unlike lengths; what they are made of follows from these numbers, whatever the kind."""
TARGETS = [[5, 6, 7], [8], [4, 9]]
ANSWERS = [0, 1, 1]

NUMBERS = {
    "autoencoder": r"decoder\.kind: transformer .* vector.* allowed: reconstruction",
    "image-autoencoder": r"decoder\.kind: transformer .* image.* allowed: reconstruction",
    "forecasting": r"decoder\.kind: transformer .* series.* allowed: reconstruction",
}
"""Recipes without a Transformer decoder: numbers come out, which are neither written nor asked for."""

ENCODERS = {
    "dialog-history": ["encoder.levels=transformer"],
    "document-classification": ["encoder.levels=transformer"],
    "summarisation-hierarchical": ["encoder.levels=transformer"],
    "sequence-autoencoder": ["encoder.kind=transformer", "decoder.start_by=dense"],
    "image-autoencoder": [
        "inputs.image.encoder.kind=transformer",
        "decoder.reconstruction.channels=[32,16]",
    ],
    "image-captioning": ["inputs.image.encoder.kind=transformer"],
    "visual-question-answering": ["inputs.question.encoder.kind=transformer", "inputs.image.encoder.kind=transformer"],
    "arrow-of-time": ["encoder.over_time=transformer"],
    "video-captioning": ["encoder.over_time=transformer"],
    "video-classification": ["encoder.over_time=transformer"],
}
"""How an encoder becomes a Transformer where `encoder.kind=transformer` is not all: documents have levels, a summary of
another size cannot be copied into s_0, frames of a video are seen by another network first, an input may have an
encoder of its own, and there are no convolutions whose mirror could draw a picture."""

ALONE = ("autoencoder", "language-model")
"""Recipes without a Transformer encoder: a vector is one place, with no other to look at, and there may be no input."""

READ = [name for name in shipped() if name not in ALONE]


def column(recipe: Recipe, name: str, rows: list[list[int]]) -> Any:
    """What such an input is fed as."""
    settings: Any = recipe.inputs[name]
    copied = recipe.copied_from == name
    if settings.kind in ("text", "set"):
        sequences = pad_lists(rows, eos=False)
        sequences.copyable = Copyable(sequences.ids) if copied else None
        return sequences
    if settings.kind == "texts":
        return documents(rows, copied=copied)
    if settings.content == "frames":
        size = getattr(settings, "channels", SYMBOLS)  # of a series only data tell it
        values = [np.sin(np.outer(np.arange(8 * len(row)), np.arange(1, size + 1) + row[0])) for row in rows]
        width = max(map(len, values))
        mask = torch.tensor([[place < len(value) for place in range(width)] for value in values])
        filled = [np.concatenate([value, np.zeros((width - len(value), size))]) for value in values]
        return Frames(torch.tensor(np.stack(filled), dtype=torch.float32), mask)
    return frames_of(settings, rows)


def documents(rows: list[list[int]], *, copied: bool) -> Nested:
    """Each row a document: its first two symbols a sentence, the rest another."""
    parts = [[row[:2], row[2:]] if len(row) > 2 else [row] for row in rows]
    ids = torch.zeros(
        len(rows), max(map(len, parts)), max(len(value) for row in parts for value in row), dtype=torch.long
    )
    for i, row in enumerate(parts):
        for j, sentence in enumerate(row):
            ids[i, j, : len(sentence)] = torch.tensor(sentence)
    return Nested(ids, ids > 0, copyable=Copyable(pad_lists(rows, eos=False).ids) if copied else None)


def frames_of(settings: Any, rows: list[list[int]]) -> Pictures | Clips:
    """Pictures, or clips of as many frames as a row is long."""
    height, width = settings.height, settings.width or 64
    draw = [np.random.default_rng(row[0]) for row in rows]
    if settings.kind == "image":
        pixels = np.stack([value.integers(0, 256, (settings.channels, height, width), np.uint8) for value in draw])
        return Pictures(torch.from_numpy(pixels), torch.full((len(rows),), width))
    longest = max(map(len, rows))
    shape = (longest, settings.channels, height, width)
    clips = np.zeros((len(rows), *shape), np.uint8)
    for i, row in enumerate(rows):
        clips[i, : len(row)] = draw[i].integers(0, 256, (len(row), *shape[1:]), np.uint8)
    mask = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
    return Clips(torch.from_numpy(clips), mask)


def batch(recipe: Recipe, numbers: list[int]) -> Batch:
    rows = [ROWS[i] for i in numbers]
    inputs = {name: column(recipe, name, rows) for name in recipe.inputs}
    return Batch(inputs, target_of(recipe, inputs, numbers), numbers)


def target_of(recipe: Recipe, inputs: dict[str, Any], numbers: list[int]) -> Target:
    if recipe.output.numeric:
        read = next(iter(inputs.values()))
        numbers_of = torch.tensor([[1.0] * LABELS, [-1.0] * LABELS, [0.5] * LABELS])
        return Numbers(read.pixels.flatten(1) / 255 if recipe.output.shape else numbers_of[: len(numbers)])
    if recipe.output.one_step:
        return Labels(torch.tensor([ANSWERS[i] for i in numbers]))
    return pad_lists([TARGETS[i] for i in numbers], eos=True)


def built(recipe: Recipe) -> EncoderDecoder:
    torch.manual_seed(7)
    labels = 2 if recipe.generated_labels else LABELS
    return EncoderDecoder(
        recipe, Sizes(dict.fromkeys(recipe.inputs, SYMBOLS), labels if recipe.output.one_step else SYMBOLS)
    )


def search_results(model: EncoderDecoder, recipe: Recipe, *, beam: int) -> list[list[Hypothesis]]:
    examples = batch(recipe, [0, 1, 2])
    if recipe.output.one_step:
        return classify([(model, examples.inputs)], examples.rows, maps=True)
    return search([(model, examples.inputs)], examples.rows, SearchOptions(beam=beam, max_length=4), maps=True)


@torch.inference_mode()
def drawings(model: EncoderDecoder, recipe: Recipe, numbers: list[int]) -> torch.Tensor:
    """What comes out where that is no symbol."""
    return model.numbers(model.forward_batch(batch(recipe, numbers))[0])


def check(recipe: Recipe) -> None:
    model = built(recipe)
    examples = batch(recipe, [0, 1, 2])
    loss = objective_of(recipe)(model.train(), examples).mean
    loss.backward()
    assert loss.isfinite()
    assert all(value.grad is None or value.grad.isfinite().all() for value in model.parameters())
    writing = model.head if recipe.output.numeric else model.decoder
    assert any(value.grad is not None and value.grad.any() for value in writing.parameters())
    for reader in model.encoders.values():
        assert any(value.grad is not None and value.grad.any() for value in reader.parameters())
    model.eval()
    if recipe.output.numeric:
        together = drawings(model, recipe, [0, 1, 2])
        for number in range(3):
            torch.testing.assert_close(drawings(model, recipe, [number])[0], together[number], atol=1e-5, rtol=0)
        return
    together = score_targets(model, examples)
    for number in range(3):
        alone = batch(recipe, [number])
        assert score_targets(model, alone)[0].log_probs == pytest.approx(together[number].log_probs, abs=2e-4)
    for beam in (1, 3):
        for (best, *_), row in zip(search_results(model, recipe, beam=beam), ROWS, strict=True):
            assert np.isfinite(best.log_probability)
            assert best.looks.keys() == {*recipe.looked_at}
            for weights in best.looks.values():
                assert weights.sum(-1) == pytest.approx(np.ones(len(weights)), abs=1e-4), row


@pytest.mark.parametrize("name", [name for name in shipped() if name not in NUMBERS])
def test_as_decoder(name: str) -> None:
    recipe = load_recipe(name, overrides=["decoder.kind=transformer"])
    assert recipe.decoder.kind == "transformer"
    check(recipe)


@pytest.mark.parametrize("name", READ)
def test_as_encoder(name: str) -> None:
    recipe = load_recipe(name, overrides=ENCODERS.get(name, ["encoder.kind=transformer"]))
    for value in recipe.inputs:
        settings: Any = recipe.encoder_of(value)
        assert "transformer" in (settings.kind, getattr(settings, "levels", ""), getattr(settings, "over_time", ""))
    check(recipe)


NAMED = {
    "dialog-history": "encoder.levels transformer",
    "document-classification": "encoder.levels transformer",
    "summarisation-hierarchical": "encoder.levels transformer",
    "sequence-autoencoder": r"decoder\.start_by: copy .*dense",
    "image-autoencoder": "inputs.image.encoder",
    "image-captioning": "inputs.image.encoder",
    "visual-question-answering": "inputs.image.encoder, inputs.question.encoder",
    "arrow-of-time": "encoder.over_time transformer",
    "video-captioning": "encoder.over_time transformer",
    "video-classification": "encoder.over_time transformer",
    "autoencoder": r"encoder\.kind: transformer .*'x'.*allowed: dense",
    "language-model": "no inputs",
}
"""What is said where `encoder.kind=transformer` is not how it is asked for."""


@pytest.mark.parametrize("name", shipped())
def test_the_kind_alone_is_enough_or_the_key_is_named(name: str) -> None:
    if name not in NAMED:
        assert load_recipe(name, overrides=["encoder.kind=transformer"]).encoder.kind == "transformer"
        return
    with pytest.raises(UserError, match=NAMED[name]):
        load_recipe(name, overrides=["encoder.kind=transformer"])


@pytest.mark.parametrize("name", [name for name in READ if name not in NUMBERS])
def test_as_both(name: str) -> None:
    check(load_recipe(name, overrides=[*ENCODERS.get(name, ["encoder.kind=transformer"]), "decoder.kind=transformer"]))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_the_exception(name: str) -> None:
    with pytest.raises(UserError, match=NUMBERS[name]):
        load_recipe(name, overrides=["decoder.kind=transformer"])
