"""Places are states, the summary is the last of them, and padding changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.cells import Cell
from seq2see.encoders import ByInput, RecurrentEncoder, encoders
from seq2see.encoders.recurrent import RecurrentEncoderSettings
from seq2see.errors import UserError

SYMBOLS, SIZE = 9, 4
IDS = torch.tensor([[4, 5, 6, 7], [8, 4, 0, 0], [0, 0, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
FORMS: list[dict[str, Any]] = [
    {"cell": cell, "bidirectional": both, "layers": layers}
    for cell in ("rnn", "gru", "lstm")
    for both in (False, True)
    for layers in (1, 2)
] + [{"cell": "gru", "reset": "before"}, {"cell": "gru", "activation": "logistic"}]


def encoder(**settings: Any) -> RecurrentEncoder:
    settings = {"size": SIZE, "embedding": {"size": 3}, **settings}
    made = RecurrentEncoder(RecurrentEncoderSettings.model_validate(settings), symbols=SYMBOLS)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made.eval()


def as_torch(made: RecurrentEncoder, cell: str, ids: Tensor) -> tuple[Tensor, Tensor]:
    """States and summary of one row without padding by torch's own layer with the same weights."""
    kind: Any = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell]
    directions = len(made.layers.readers()[0])
    layer = kind(3, SIZE, num_layers=len(made.layers), bidirectional=directions == 2, batch_first=True)
    for number, cells in enumerate(made.layers.readers()):
        for way, ours in enumerate(cells):
            assert isinstance(ours, Cell)
            name = f"l{number}{'_reverse' if way else ''}"
            getattr(layer, f"weight_ih_{name}").data = ours.W["x"].data
            getattr(layer, f"weight_hh_{name}").data = ours.U.data
            getattr(layer, f"bias_ih_{name}").data = ours.b.data
            getattr(layer, f"bias_hh_{name}").data.zero_()
            if cell == "gru":
                getattr(layer, f"bias_hh_{name}").data[2 * SIZE :] = ours.b_U.data  # type: ignore[operator]
    outputs, last = layer(made.embedding(ids[None]))
    ends = last[0] if isinstance(last, tuple) else last
    return outputs[0], ends[-directions:, 0].flatten()


@pytest.mark.parametrize("form", FORMS[:12], ids=lambda form: "-".join(map(str, form.values())))
def test_an_encoder_equals_torchs_own_on_rows_without_padding(form: dict[str, Any]) -> None:
    made = encoder(**form)
    encoded = made(IDS, MASK)
    for row, length in enumerate((4, 2)):
        states, summary = as_torch(made, form["cell"], IDS[row, :length])
        torch.testing.assert_close(encoded.places.states[row, :length], states, atol=1e-5, rtol=0)
        torch.testing.assert_close(encoded.summary[row], summary, atol=1e-5, rtol=0)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_padding_changes_nothing(form: dict[str, Any]) -> None:
    made = encoder(**form)
    encoded = made(IDS, MASK)
    wider = made(
        torch.cat([torch.where(MASK, IDS, 5), torch.full((3, 2), 8)], 1), torch.cat([MASK, torch.zeros(3, 2) > 0], 1)
    )
    torch.testing.assert_close(wider.summary, encoded.summary, atol=1e-6, rtol=0)
    torch.testing.assert_close(wider.places.states[:, :4], encoded.places.states, atol=1e-6, rtol=0)
    assert (encoded.places.states[~MASK] == 0).all()
    alone = made(IDS[1:2, :2], MASK[1:2, :2])
    torch.testing.assert_close(alone.summary[0], encoded.summary[1], atol=1e-6, rtol=0)
    torch.testing.assert_close(alone.places.states[0], encoded.places.states[1, :2], atol=1e-6, rtol=0)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_the_summary_is_the_last_state_of_each_direction(form: dict[str, Any]) -> None:
    made = encoder(**form)
    encoded = made(IDS, MASK)
    states = encoded.places.states
    for row, length in enumerate((4, 2)):
        assert encoded.summary[row, :SIZE].equal(states[row, length - 1, :SIZE])
        if made.size == 2 * SIZE:
            assert encoded.summary[row, SIZE:].equal(states[row, 0, SIZE:])
    assert (encoded.summary[2] == 0).all()
    assert made.size == made.summary_size == states.shape[-1]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_a_gradient_reaches_every_parameter_and_no_padding(form: dict[str, Any]) -> None:
    made = encoder(**form)
    encoded = made(IDS, MASK)
    (encoded.places.states.pow(2).sum() + encoded.summary.pow(2).sum()).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name
    assert not made.embedding.E.grad[0].any()  # type: ignore[index, union-attr]


def test_an_input_of_no_symbols_at_all_is_read() -> None:
    encoded = encoder(layers=2)(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0) > 0)
    assert encoded.places.states.shape == (2, 0, 2 * SIZE)
    assert (encoded.summary == 0).all()


def test_places_lie_as_tokens_and_keep_their_symbols() -> None:
    places = encoder()(IDS, MASK, [["a", "b", "c", "d"], ["e", "a"], []]).places
    assert places.layout.to_dict(3) == {"kind": "tokens", "shape": [3]}
    assert places.tokens == [["a", "b", "c", "d"], ["e", "a"], []]
    assert places.mask is MASK
    assert places.select(torch.tensor([1])).tokens == [["e", "a"]]


def test_dropout_is_for_training_alone() -> None:
    made = encoder(layers=2, dropout=0.5)
    assert made(IDS, MASK).summary.equal(made(IDS, MASK).summary)
    made.train()
    assert not made(IDS, MASK).summary.equal(made(IDS, MASK).summary)


def test_encoders_are_asked_for_by_name() -> None:
    assert encoders["recurrent"] is RecurrentEncoder
    with pytest.raises(UserError, match=r"unknown encoder 'recurent' \(did you mean 'recurrent'\?\)"):
        encoders["recurent"]


@pytest.mark.parametrize("name", ["keys", "items", "values", "update", "pop", "type", "to", "forward", "source"])
def test_modules_by_input_take_any_name(name: str) -> None:
    kept = nn.Linear(2, 3)
    made: ByInput[nn.Linear] = ByInput({name: kept})
    assert made[name] is kept
    assert list(made.items()) == [(name, kept)]
    assert list(made.state_dict()) == [f"{name}.weight", f"{name}.bias"]
    made.load_state_dict({key: torch.ones_like(value) for key, value in made.state_dict().items()})
    assert (kept.weight == 1).all()
    assert not made.eval().double()[name].training
    assert kept.weight.dtype == torch.float64
