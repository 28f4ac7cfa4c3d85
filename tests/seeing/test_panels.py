from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.looks import Looks
from seq2see.seeing.figure import plot
from seq2see.seeing.panels import MAX_SYMBOLS, hidden_maps, panels_of, top_of_scale, truncated_length


def square(size: int, *, outputs: int) -> Looks:
    weights = np.full((size, size), 1 / size, dtype=np.float32)
    symbols = [f"w{place}" for place in range(size)]
    return Looks(maps={"self": weights}, inputs={"self": symbols}, outputs=[f"o{step}" for step in range(outputs)])


def test_one_panel_for_a_map_and_one_for_each_head(make_looks: Callable[..., Looks]) -> None:
    ((plain,),) = panels_of(make_looks(list("abc"), list("xy")))
    assert (plain.steps, plain.places, plain.head) == (2, 3, None)
    (heads,) = panels_of(make_looks(list("abc"), list("xy"), heads=4))
    assert [panel.head for panel in heads] == [1, 2, 3, 4]


def test_the_default_map_comes_first_and_one_can_be_chosen(looks: Looks) -> None:
    looks.maps["other"] = looks.maps["source"]
    looks.inputs["other"] = looks.inputs["source"]
    looks.default = "other"
    assert [group[0].name for group in panels_of(looks)] == ["other", "source"]
    assert [group[0].name for group in panels_of(looks, map="source")] == ["source"]


def test_a_sequence_that_looks_at_itself_has_its_own_symbols_as_rows() -> None:
    ((panel,),) = panels_of(square(4, outputs=2))
    assert panel.outputs == panel.inputs


def test_no_map_says_why() -> None:
    with pytest.raises(UserError, match="nothing to draw: the recipe says attention: none"):
        panels_of(Looks(reason="the recipe says attention: none"))
    with pytest.raises(UserError, match="no attention"):
        panels_of(Looks())


def test_what_does_not_fit_is_named(looks: Looks) -> None:
    with pytest.raises(UserError, match=r"unknown map 'sorce' \(did you mean 'source'\?\); this model has: source"):
        panels_of(looks, map="sorce")
    with pytest.raises(UserError, match="unknown direction 'up'"):
        panels_of(looks, direction="up")
    with pytest.raises(UserError, match="3 places, but 2 input symbols"):
        panels_of(Looks(maps=looks.maps, inputs={"source": ["a", "b"]}, outputs=looks.outputs))
    with pytest.raises(UserError, match="4 steps, but 1 output symbols"):
        panels_of(Looks(maps=looks.maps, inputs=looks.inputs, outputs=["x"]))
    with pytest.raises(UserError, match="not finite"):
        panels_of(Looks(maps={"source": looks.weights * np.nan}, inputs=looks.inputs, outputs=looks.outputs))
    with pytest.raises(UserError, match=r"shape \(3,\)"):
        panels_of(Looks(maps={"source": looks.weights[0]}, inputs=looks.inputs, outputs=looks.outputs))


@pytest.mark.parametrize(
    ("largest", "top"), [(0.004, 0.005), (0.09, 0.1), (0.26, 0.3), (0.5, 0.5), (0.51, 1.0), (1.0, 1.0)]
)
def test_the_scale_ends_at_a_round_number(largest: float, top: float) -> None:
    looks = Looks(maps={"m": np.array([[largest, 0.0]])}, inputs={"m": ["a", "b"]}, outputs=["x"])
    (panels,) = panels_of(looks)
    assert top_of_scale(panels) == top
    assert top_of_scale(panels, scale="full") == 1.0


def test_an_unknown_scale_is_refused(looks: Looks) -> None:
    with pytest.raises(UserError, match="unknown scale 'log'; allowed: auto, full"):
        top_of_scale(panels_of(looks)[0], scale="log")


def test_heads_have_a_mean_and_are_told_beside_it() -> None:
    heads = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], dtype=np.float32)
    looks = Looks(
        {"source": heads, "source.layer-1": heads[0]}, {"source": ["a", "b"], "source.layer-1": ["a", "b"]}, ["x", "y"]
    )
    np.testing.assert_allclose(looks.weights, [[0.5, 0.5], [0.0, 1.0]])
    assert looks.heads is heads
    told = looks.to_dict()
    assert told["weights"] == [[0.5, 0.5], [0.0, 1.0]]
    assert told["heads"] == heads.tolist()
    assert "heads" not in told["maps"]["source.layer-1"]
    assert [len(group) for group in panels_of(looks, map="all")] == [2, 1]


def test_the_last_layer_is_drawn_and_named_and_the_others_on_request() -> None:
    weights = np.eye(2, dtype=np.float32)
    names = ["premise", "premise.layer-1", "premise.layer-2", "other"]
    looks = Looks(dict.fromkeys(names, weights), {name: ["a", "b"] for name in names}, ["x", "y"])
    assert [group[0].title for group in panels_of(looks)] == ["premise (layer 3, the last)", "other"]
    assert hidden_maps(looks) == ["premise.layer-1", "premise.layer-2"]
    assert [group[0].title for group in panels_of(looks, map="premise.layer-1")] == ["premise.layer-1"]
    alone = Looks({"x.layer-1": weights}, {"x.layer-1": ["a", "b"]}, ["x", "y"])
    assert [group[0].title for group in panels_of(alone)] == ["x.layer-1"]


def test_of_a_long_sequence_on_itself_the_first_symbols_are_drawn_unless_it_is_asked_for() -> None:
    symbols = [f"s{number}" for number in range(400)]
    looks = onto_itself(symbols)
    del looks.maps["source"]
    looks.default = None
    ((first, _),) = panels_of(looks)
    assert first.weights.shape == (MAX_SYMBOLS, MAX_SYMBOLS)
    assert first.inputs == first.outputs == symbols[:MAX_SYMBOLS]
    assert (first.across, first.down) == ("looked at, the first 48 of 400", "looking, the first 48 of 400")
    assert truncated_length(looks) == 400
    assert max(plot(looks).get_size_inches()) < 22
    assert panels_of(looks, map="source.self-1")[0][0].places == 400
    assert truncated_length(onto_itself(symbols)) == 0


def test_sentences_that_look_at_sentences_are_numbered_alike_and_keep_their_blanks() -> None:
    sentences = ["a good film.", "Yes.", "it went on for a very long time indeed"]
    looks = Looks({"doc.self-1": np.eye(3, dtype=np.float32)}, {"doc.self-1": sentences}, ["good"])
    looks.rows["doc.self-1"], looks.layouts["doc.self-1"] = sentences, {"kind": "sentences", "shape": [3]}
    ((panel,),) = panels_of(looks)
    assert panel.inputs == panel.outputs == ["1 a good film.", "2 Yes.", "3 it went on for a very lo…"]
    written = {text.get_text() for axes in plot(looks).axes for text in axes.texts}
    assert "1 a good film." in written


def onto_itself(symbols: list[str], *, heads: int = 2) -> Looks:
    """Cross attention of two outputs at the symbols, and the symbols' own looks at each other."""
    weights = np.tile(np.tri(len(symbols), dtype=np.float32), (heads, 1, 1))
    weights /= weights.sum(-1, keepdims=True)
    return Looks(
        maps={"source": weights[0, :2], "source.self-1": weights},
        inputs={"source": symbols, "source.self-1": symbols},
        outputs=["x", "y"],
        rows={"source.self-1": list(symbols)},
        default="source",
    )


def test_looks_of_a_sequence_at_itself_are_drawn_where_they_are_asked_for() -> None:
    looks = onto_itself(["a", " ", "b"])
    assert [group[0].name for group in panels_of(looks)] == ["source"]
    assert hidden_maps(looks) == ["source.self-1"]
    assert [group[0].name for group in panels_of(looks, map="all")] == ["source", "source.self-1"]
    ((first, second),) = panels_of(looks, map="source.self-1")
    assert (first.head, second.head) == (1, 2)
    assert first.outputs == first.inputs == ["a", " ", "b"]
    assert (first.down, first.across) == ("looking", "looked at")


def test_they_are_drawn_where_there_is_nothing_else() -> None:
    looks = onto_itself(["a", "b"])
    del looks.maps["source"]
    looks.default = None
    assert hidden_maps(looks) == []
    assert [group[0].name for group in panels_of(looks)] == ["source.self-1"]


def test_the_place_of_a_hard_choice_is_marked_in_picture_and_page(tmp_path: Path) -> None:
    looks = Looks({"x": np.float32([[0.6, 0.4], [0.3, 0.7]])}, {"x": ["a", "b"]}, ["u", "v"], chosen={"x": [0, 1]})
    assert panels_of(looks)[0][0].chosen == (0, 1)
    drawn = looks.save(tmp_path / "x.svg").read_text("utf-8")
    assert [f'id="chosen {step}"' in drawn for step in (1, 2, 3)] == [True, True, False]
    told = looks.save(tmp_path / "x.html").read_text("utf-8")
    assert told.count('title="chosen"') == 2
    assert looks.to_dict()["chosen"] == [0, 1]
    soft = Looks(dict(looks.maps), dict(looks.inputs), ["u", "v"])
    assert "chosen" not in soft.to_dict()
    assert "chosen 1" not in soft.save(tmp_path / "y.svg").read_text("utf-8")
