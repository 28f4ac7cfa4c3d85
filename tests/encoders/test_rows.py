"""Columns of lines as places: in the order they are read, each knowing its neighbours, whatever stands in the batch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from seq2see.decoders import CtcHead
from seq2see.encoders import ConvolutionalEncoder
from seq2see.encoders.backbones.base import Level, max_pool
from seq2see.encoders.base import InputInfo
from seq2see.encoders.convolutional import ConvolutionalEncoderSettings, RowSettings
from seq2see.errors import UserError
from seq2see.memory import View
from seq2see.modalities.image import ImageField, Pictures
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe

COLUMNS = ConvolutionalEncoderSettings(size=8, channels=[4, 6], pooled=["both", "height"], places="columns")
READ = COLUMNS.model_copy(update={"recurrent": RowSettings(size=5, cell="lstm")})
WIDTHS = torch.tensor([24, 14])


def lines() -> Pictures:
    pixels = torch.randint(0, 256, (2, 1, 16, 24), dtype=torch.uint8)
    pixels[1, :, :, 14:] = pixels[1, :, :, 13:14]
    return Pictures(pixels, WIDTHS)


def encoder(settings: ConvolutionalEncoderSettings) -> ConvolutionalEncoder:
    return ConvolutionalEncoder.build(settings, InputInfo(channels=1, height=16)).eval()


def test_a_column_joins_its_cells() -> None:
    made, column = encoder(COLUMNS), lines()
    assert column.pixels is not None
    encoded = made.read(column)
    assert encoded.places.layout.kind == made.layout == COLUMNS.layout == "frames"
    assert encoded.places.mask.sum(1).tolist() == [12, 7]
    cells = made.map_of(column.pixels[:1])
    assert cells.shape == (1, 6, 4, 12)
    expected = made.W_p(cells[:, :, :, 5].flatten(1))
    torch.testing.assert_close(encoded.places.states[:1, 5], expected)


def test_from_the_right_the_last_real_column_is_the_first() -> None:
    made, column = encoder(COLUMNS), lines()
    there = made.read(column).places
    back = made.read(Pictures(column.pixels, column.widths, leftward=True)).places
    assert back.mask.equal(there.mask)
    assert back.layout.to_dict(7) == {"kind": "frames", "shape": [7], "direction": "right-to-left"}
    for row, real in enumerate((12, 7)):
        torch.testing.assert_close(back.states[row, :real], there.states[row, :real].flip(0))


def test_ctc_reads_a_right_to_left_line_in_logical_order() -> None:
    """The same chance as that of the text turned round over columns from the left."""
    made, column = encoder(COLUMNS), lines()
    head = CtcHead(View(8, "frames"), 7)
    text = torch.tensor([[4, 5, 5, 6], [6, 4, 5, 4]])
    real = torch.ones_like(text, dtype=torch.bool)
    back = made.read(Pictures(column.pixels, column.widths, leftward=True)).places
    there = made.read(column).places
    torch.testing.assert_close(head.loss(back, text, mask=real).total, head.loss(there, text.flip(1), mask=real).total)
    assert head.loss(back, text, mask=real).total != head.loss(there, text, mask=real).total


@pytest.mark.parametrize("leftward", [False, True])
def test_a_line_does_not_depend_on_those_beside_it(leftward: bool) -> None:
    made, column = encoder(READ), lines()
    assert column.pixels is not None
    assert made.size == READ.places_size == 10
    for width in (14, 13):
        alone = made.read(Pictures(column.pixels[1:, ..., :width], torch.tensor([width]), leftward=leftward))
        both = made.read(Pictures(column.pixels, torch.tensor([23, width]), leftward=leftward))
        assert both.places.mask.sum(1).tolist() == [12, 7]
        assert alone.places.mask.all()
        torch.testing.assert_close(both.places.states[1, :7], alone.places.states[0])
        torch.testing.assert_close(both.summary[1], alone.summary[0])
        assert not both.places.states[1, 7:].any()


@pytest.mark.parametrize("across", [1, 2])
@pytest.mark.parametrize(("rows", "columns"), [(6, 8), (5, 7), (1, 1)])
def test_pooling_is_that_of_torch(across: int, rows: int, columns: int) -> None:
    """The same maxima and the same gradient, for sides of even and odd length."""
    states = torch.randn(2, 3, rows, columns, requires_grad=True)
    expected = F.max_pool2d(states, (2, across), ceil_mode=True)
    pooled = max_pool(states, across)
    torch.testing.assert_close(pooled, expected, rtol=0, atol=0)
    above = torch.randn_like(expected)
    (gradient,), (reference,) = (torch.autograd.grad(maps, states, above) for maps in (pooled, expected))
    torch.testing.assert_close(gradient, reference, rtol=0, atol=0)


def test_pooling_before_relu_changes_nothing() -> None:
    """relu does not change the order of numbers, so the larger ones may be chosen first."""
    level = Level(2, 4, halved="both")
    pixels = torch.randn(2, 2, 9, 11)
    torch.testing.assert_close(level(pixels), nn.Sequential(*level)(pixels), rtol=0, atol=0)


def test_rows_of_a_grid_are_read_one_by_one() -> None:
    made = encoder(READ.model_copy(update={"places": "grid"}))
    pixels = torch.randint(0, 256, (1, 1, 16, 24))
    places = made(pixels).places
    assert places.layout.shape == (4, 12)
    assert places.states.shape == (1, 48, 10)
    assert made.layers is not None
    cells = made.map_of(pixels)[:, :, 2].transpose(1, 2)
    alone = made.layers(made.W_p(cells), torch.ones(1, 12, dtype=torch.bool)).states
    torch.testing.assert_close(places.states[:, 24:36], alone)


RECIPE = {"inputs": {"image": {"kind": "image", "height": 16, "width": 0, "direction": "auto"}}}


@pytest.mark.parametrize(
    ("texts", "leftward"),
    [(["\u0628\u0627\u0628 12", "\u0628 abc"], True), (["abc \u0628", "12"], False), (["12"], False)],
)
def test_lines_are_read_as_their_script_is_written(tmp_path: Path, texts: list[str], leftward: bool) -> None:
    recipe = load_recipe({**RECIPE, "encoder": {"kind": "convolutional"}, "output": {"tokens": "character"}})
    rows = [{"image": "a.png", "output": text} for text in texts]
    fields = Fields.build(recipe, lambda: iter(rows))
    fields.save(tmp_path)
    for one in (fields, Fields.load(tmp_path, recipe)):
        field = one.inputs["image"]
        assert isinstance(field, ImageField)
        assert field.leftward is leftward


@pytest.mark.parametrize(
    ("inputs", "encoder", "output", "said"),
    [
        (
            {},
            {"places": "vector", "recurrent": {"size": 8}},
            {},
            "encoder.recurrent: has no effect here: encoder.places vec",
        ),
        ({"direction": "right-to-left"}, {"places": "vector"}, {}, "image.direction: has no effect here: .* one place"),
        (
            {"direction": "auto", "width": 16},
            {"kind": "dense"},
            {},
            "image.direction: has no effect here: encoder dense",
        ),
        ({"direction": "auto"}, {}, {"kind": "vector"}, "image.direction: has no effect here: a vector has no letters"),
        ({"direction": "rtl"}, {}, {}, "inputs.image.direction"),
        ({}, {"recurrent": {"cell": "lstm", "reset": "before"}}, {}, "encoder.recurrent.reset: has no effect here"),
        ({}, {"recurrent": {"cel": "lstm"}}, {}, "encoder.recurrent.cel.*did you mean 'cell'"),
        ({"width": 16, "fit": "stretch", "augment": {"stretch": 0.2}}, {}, {}, "augment.stretch: has no effect here"),
    ],
)
def test_what_means_nothing_is_refused(
    inputs: dict[str, object], encoder: dict[str, object], output: dict[str, object], said: str
) -> None:
    recipe = {
        "inputs": {"image": {"kind": "image", "height": 16, "width": 0, **inputs}},
        "encoder": {"kind": "convolutional", **encoder},
        "output": output,
    }
    with pytest.raises(UserError, match=said):
        load_recipe(recipe)
