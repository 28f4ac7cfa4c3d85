"""Gradients through time against a closed form, and what clipping leaves of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from seq2see.cli.figure.gradients import chart_of
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.gradients import by_steps_back, gradient_runs, gradients_through_time, with_cell

RECIPE = {
    "task": "verdict",
    "inputs": {"source": {"tokens": "character"}},
    "output": {"kind": "label"},
    "encoder": {"cell": "rnn", "size": 5, "bidirectional": False, "embedding": {"size": 3}},
    "decoder": {"kind": "label", "size": 4, "start": "source"},
    "attention": "none",
    "training": {"learning_rate": 0.05, "clip": 0.3, "batch_rows": 8, "epochs": 1},
}
ROWS = [{"source": "abcab", "output": "x"}, {"source": "ba", "output": "y"}, {"source": "c", "output": "x"}]


def test_a_plain_cell_at_rest_is_linear_and_its_gradients_are_powers_of_its_matrix() -> None:
    """All states are 0 where embeddings and biases are, and the slope of tanh is 1 there, so that the gradient k steps
    back is W' (U')^k times that of the last state."""
    torch.manual_seed(0)
    recipe = load_recipe(RECIPE)
    bundle = Bundle.create(recipe, Fields.build(recipe, lambda: iter(ROWS)))
    encoder = bundle.network.encoder("source")
    cell = next(module for module in encoder.modules() if hasattr(module, "U"))
    with torch.no_grad():
        encoder.embedding.E.zero_()
        cell.b.zero_()
        cell.U.mul_(0.7)
    W, U = (np.asarray(one.detach().double()) for one in (next(iter(cell.W.values())), cell.U))
    norms = gradients_through_time(bundle, ROWS)
    assert [len(row) for row in norms] == [5, 2, 1]
    summary = torch.zeros(3, 5, requires_grad=True)
    last = _slopes_of_the_last_state(bundle, summary)
    for row, found in enumerate(norms):
        wanted = [np.linalg.norm(W.T @ np.linalg.matrix_power(U.T, back) @ last[row]) for back in range(len(found))]
        assert found[::-1] == pytest.approx(wanted, rel=1e-4)


def _slopes_of_the_last_state(bundle: Bundle, summary: torch.Tensor) -> np.ndarray:
    """d -log P / d h_M, by putting a summary of ours in the encoder's place."""
    batch = bundle.fields.batch(ROWS, target=True)
    network = bundle.network
    memory = network.encode(batch.inputs, len(ROWS))
    memory.summaries["source"] = summary
    ready = network.decoder.prepare(memory)
    step = network.step(ready, network.begin(ready), None)
    given = network.head.target_scores(step, ready, batch.target.ids, mask=torch.ones(len(ROWS), dtype=torch.bool))
    (slopes,) = torch.autograd.grad(-given.sum(), [summary])
    return np.asarray(slopes.double())


def test_steps_back_are_counted_from_the_end() -> None:
    rows = [np.array([1.0, 2.0, 3.0]), np.array([5.0])]
    assert by_steps_back(rows) == [(4.0, 2), (2.0, 1), (1.0, 1)]
    assert by_steps_back(rows, least=2) == [(4.0, 2)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tsv"
    words = [f"{a}{b}{c}" for a in "abc" for b in "abc" for c in "abcd"]
    path.write_text("source\toutput\n" + "".join(f"{word}\t{word[0]}\n" for word in words), encoding="utf-8")
    return path


def test_clipping_bounds_what_the_optimiser_sees(table: Path) -> None:
    courses = gradient_runs(RECIPE, table, updates=4)
    assert [(course.cell, course.clip) for course in courses] == [
        (cell, clip) for cell in ("rnn", "gru", "lstm") for clip in (0.3, 0.0)
    ]
    for course in courses:
        assert len(course.norms) == len(course.seen) == 4
        assert sorted(course.through) == [0, 4]
        bound = course.clip or np.inf
        assert course.seen == pytest.approx([min(norm, bound) for norm in course.norms], rel=1e-3)
    assert max(courses[0].norms) > 0.3
    assert courses[0].through[0] == courses[1].through[0]
    assert courses[0].through[4] != courses[1].through[4]
    again = gradient_runs(RECIPE, table, updates=4)
    assert [vars(course) for course in again] == [vars(course) for course in courses]


def test_an_update_without_a_finite_gradient_is_a_gap(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip, calls = torch.nn.utils.clip_grad_norm_, []

    def second_is_none(*given: object) -> torch.Tensor:
        calls.append(given)
        norm = clip(*given)  # type: ignore[arg-type]
        return norm * float("inf") if len(calls) % 3 == 2 else norm

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", second_is_none)
    courses = gradient_runs(RECIPE, table, updates=3)
    for course in courses:
        assert np.isnan(course.norms).tolist() == np.isnan(course.seen).tolist() == [False, True, False]
        assert sorted(course.through) == [0, 3]
    chart = chart_of(courses)
    assert sum("seen" in row for row in chart.rows) == 3 * len(courses)
    assert chart.to_dict()["rows"][-2]["norm"] is None


def test_cells_are_replaced_wherever_there_are_any() -> None:
    made = load_recipe({"inputs": {"source": {}}, "encoder": {"cell": "gru", "reset": "before"}})
    assert with_cell(made, "lstm").encoder_of("source").cell == "lstm"
    assert with_cell(made, "gru").encoder_of("source").reset == "before"
    own = load_recipe({"inputs": {"source": {"encoder": {"cell": "gru"}}}})
    assert with_cell(own, "lstm").encoder_of("source").cell == "lstm"
    for cell in ("rnn", "gru", "lstm"):
        assert with_cell(load_recipe("image-captioning"), cell).decoder.cell == cell
        along = load_recipe("text-line-recognition", overrides=["encoder.recurrent.cell=gru"])
        assert with_cell(along, cell).encoder_of("image").recurrent.cell == cell
    with pytest.raises(UserError, match="no recurrent cell"):
        with_cell(load_recipe("translation-transformer"), "gru")
    nested = {"kind": "hierarchical", "size": 8}
    for levels, wanted in [
        ("transformer", "none"),
        (["transformer", "transformer"], "none"),
        (["recurrent", "transformer"], "lstm"),
        (["transformer", "recurrent"], "lstm"),
        ("recurrent", "lstm"),
    ]:
        document = load_recipe({"inputs": {"d": {"kind": "texts"}}, "encoder": {**nested, "levels": levels}})
        replaced = with_cell(document, "lstm")
        assert (getattr(replaced.encoder_of("d"), "cell", "none"), replaced.decoder.cell) == (wanted, "lstm")
    with pytest.raises(UserError, match="no recurrent cell"):
        with_cell(load_recipe(document, overrides=["encoder.levels=transformer", "decoder.kind=transformer"]), "gru")


def test_what_has_no_way_back_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "numbers.tsv"
    table.write_text("x\n" + "".join(f"{n} {n + 1}\n" for n in range(30)), encoding="utf-8")
    with pytest.raises(UserError, match=r"at symbols, and this recipe reads none: .*\(vector\); allowed: recipes with"):
        gradient_runs("autoencoder", table, updates=1)
    with pytest.raises(UserError, match=r"this recipe reads none: image \(image\)"):
        gradient_runs("image-captioning", tmp_path / "none.tsv", updates=1)
