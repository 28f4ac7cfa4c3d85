"""`encoder.self_attention` in recipes: any score that goes by states, shown with its equation and its parameters."""

from __future__ import annotations

import pytest

from seq2see.encoders import RecurrentEncoder
from seq2see.errors import UserError
from seq2see.pipeline.five_answers import recipe_parameters
from seq2see.recipe import load_recipe

ONE = {"inputs": {"source": {}}, "encoder": {"size": 8, "embedding": {"size": 6}}}


def test_it_is_off_unless_asked_for() -> None:
    assert load_recipe(ONE).encoder.self_attention == "none"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("encoder.self_attention=location", "encoder.self_attention: location goes by where places lie"),
        ("encoder.self_attention=coverage", "still being written; allowed: dot, scaled-dot, "),
        (
            "encoder.self_attention=adaptive",
            "encoder.self_attention: unknown score 'adaptive' (did you mean 'additive'",
        ),
        ("inputs.source.encoder={self_attention: x}", "inputs.source.encoder.self_attention: unknown score 'x'"),
    ],
)
def test_what_cannot_look_back_is_refused(override: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        load_recipe(ONE, overrides=[override])
    assert said in str(error.value)


def test_without_inputs_nothing_is_read() -> None:
    with pytest.raises(UserError, match=r"encoder\.self_attention: has no effect here: there are no inputs"):
        load_recipe({"encoder": {"self_attention": "dot"}})


def test_its_equations_are_told() -> None:
    both = load_recipe(ONE, overrides=["encoder.self_attention=additive"]).encoder
    lines = "\n".join(RecurrentEncoder(both, symbols=9).equations())  # type: ignore[arg-type]
    assert "f_j = gru(f_{j-1}, [e(x_j); c_j])" in lines
    assert "c_j = sum_{i<j} a_ji f_i" in lines
    assert "e_i = v' tanh(W_q q + W_k k_i), with q = Q_x e(x_j) + Q_h f_{j-1} and k_i = f_i" in lines
    assert "d_j" in lines
    one = load_recipe(ONE, overrides=["encoder.self_attention=uniform", "encoder.bidirectional=false"]).encoder
    lines = "\n".join(RecurrentEncoder(one, symbols=9).equations())  # type: ignore[arg-type]
    assert "h_j = gru(h_{j-1}, [e(x_j); c_j])" in lines
    assert "Q_x" not in lines
    assert "d_j" not in lines


def test_its_parameters_are_counted_by_name() -> None:
    plain, looking = (
        {
            one.name: one.shape
            for one in recipe_parameters(load_recipe(ONE, overrides=more), {})
            if one.part.startswith("enc")
        }
        for more in ([], ["encoder.self_attention=general"])
    )
    added = {name: shape for name, shape in looking.items() if name not in plain and "forwards" in name}
    assert added == {
        "W_c, layer 1 forwards": ("24", "8"),
        "Q_x, layer 1 forwards, self-attention": ("8", "6"),
        "Q_h, layer 1 forwards, self-attention": ("8", "8"),
        "W, layer 1 forwards, self-attention": ("8", "8"),
    }
    assert plain.keys() < looking.keys()
