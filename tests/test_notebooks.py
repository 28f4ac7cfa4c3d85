"""What a notebook shows of models and results: HTML that says what the text says, with nothing of the data run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.evaluation import Report
from seq2see.evaluation.tables import Tabular
from seq2see.training.notebook_progress import NotebookProgress, curve, notebook_output, progress_display
from seq2see.training.reports import Progress, UpdateStatus

RECIPE = {
    "task": "capitals",
    "inputs": {"source": {"tokens": "character", "column": "<b>word"}},
    "output": {"tokens": "character", "column": "upper"},
    "encoder": {"size": 8, "embedding": {"size": 6}},
    "decoder": {"size": 16, "embedding": {"size": 6}},
    "attention": {"score": "additive", "size": 6},
    "training": {"updates": 4},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    rows = [{"<b>word": a + b, "upper": (a + b).upper()} for a in "abcdef" for b in "xyz<"]
    return seq2see.train(RECIPE, rows, out=tmp_path_factory.mktemp("runs") / "capitals", listeners=[])


def shown(html: str) -> str:
    """The text of HTML."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_a_model_says_what_it_is(model: Model) -> None:
    count = sum(weight.numel() for weight in model.bundle.network.parameters())
    assert repr(model) == f"Model(capitals: <b>word -> upper; {count:,} parameters)"
    html = model._repr_html_()
    assert "<b>word" not in html  # names of columns are the user's
    assert repr(model) in shown(html)
    assert "What is the encoder?" in shown(html)
    assert str(model.describe()) == model.describe().text()
    assert shown(model.describe()._repr_html_()) == " ".join(model.describe().text().split())
    both = Model([model.bundle, model.bundle])
    assert f"2 models, {2 * count:,} parameters" in repr(both)


def test_weights_of_the_caller_are_not_explained_as_a_softmax(model: Model) -> None:
    own, forced = (model.explain("a<", step=0, oracle=oracle) for oracle in (None, {0: [0, 1]}))
    assert forced.looks[0].weights == [0, 1]
    assert own.equations["weights"].startswith("a_tj = ")
    assert "oracle" in forced.equations["weights"]
    assert "oracle" in str(forced)
    later = model.explain("a<", step=1, oracle={0: [0, 1]})
    assert later.equations == own.equations


def test_a_step_has_its_numbers(model: Model) -> None:
    step = model.explain("a<", step=1)
    html = shown(step._repr_html_())
    assert str(step) == step.text()
    for look in step.looks:
        for place, energy, weight in zip(look.places, look.energies, look.weights, strict=True):
            assert f"{place} {energy:.4f} {weight:.4f}" in html
    for text, probability in step.likeliest:
        assert re.search(rf"{re.escape(text)}( \(written\))? {probability:.4f}", html)


def test_a_report_is_a_table_with_every_number(model: Model) -> None:
    report = model.evaluate([{"<b>word": "ax", "upper": "AX"}, {"<b>word": "by", "upper": "BY"}])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", report._repr_html_())
    assert str(report) == report.text()
    for name in report.metrics:
        assert name in cells
    assert set(re.findall(r"\d+\.\d+", report.text())) <= set(re.findall(r"\d+\.\d+", " ".join(cells)))


def test_html_of_tables_is_escaped_and_keeps_sections() -> None:
    from rich.table import Table

    class Result(Tabular):
        def tables(self) -> list[Table]:
            table = Table("name", title="<i>title")
            table.add_column("number", justify="right")
            table.add_row("<script>", "1")
            table.add_section()
            table.add_row("mean", "2")
            return [table]

        def remarks(self) -> list[str]:
            return ["a & b"]

    html = Result()._repr_html_()
    assert "<script>" not in html
    assert "<i>" not in html
    assert html.count("border-bottom-width: 2px") == 2  # both cells of the row before the section
    assert "a &amp; b" in html
    assert shown(html) == "<i>title name number <script> 1 mean 2 a & b"
    assert Result().text().splitlines()[-1] == "a & b"
    assert issubclass(Report, Tabular)


def test_training_is_drawn_while_it_runs(tmp_path: Path) -> None:
    drawn: list[str] = []
    rows = [{"<b>word": a + b, "upper": (a + b).upper()} for a in "abcdef" for b in "xyz<"]
    progress = NotebookProgress(drawn.append)
    overrides = ["training.report_every=2", "training.updates=6"]
    trained = seq2see.train(RECIPE, rows, out=tmp_path / "run", overrides=overrides, listeners=[progress])
    progress.close()
    last = drawn[-1]
    assert len(drawn) >= 4
    assert last.count("<polyline") == 2
    lines = [line.split() for line in re.findall(r'<polyline points="([^"]*)"', last)]
    assert {len(points) for points in lines} == {3}  # of the loss and of the dev metric, one for each report
    assert "6 updates" in shown(last)
    assert "<b>word" not in last
    assert trained.predict("ax").text is not None


def test_a_run_that_has_ended_has_no_bar() -> None:
    drawn: list[str] = []
    progress = NotebookProgress(drawn.append)
    progress.on_update(UpdateStatus(updates=3, epoch=0.5, loss=1.0, speed=10.0, unit="tokens", share=0.5, seconds=9.0))
    assert "<progress" in drawn[-1]
    progress.close()
    assert "<progress" not in drawn[-1]
    assert "3 updates" in shown(drawn[-1])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_training_has_gradients_where_the_caller_has_switched_them_off(mode: Callable[[], Any], tmp_path: Path) -> None:
    rows = [{"<b>word": a + b, "upper": (a + b).upper()} for a in "abcdef" for b in "xyz<"]
    plain = seq2see.train(RECIPE, rows, out=tmp_path / "plain", listeners=[])
    with mode():
        trained = seq2see.train(RECIPE, rows, out=tmp_path / "without", listeners=[])
        assert not torch.is_grad_enabled()
    for one, other in zip(plain.bundle.network.parameters(), trained.bundle.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_curves_leave_out_what_is_not_finite() -> None:
    svg = curve("loss", [1, 2, 3], [float("nan"), 2.0, float("inf")], level=1.0)
    assert "nan" not in svg
    assert "inf" not in svg
    assert svg.count("<circle") == 1
    assert "stroke-dasharray" in svg
    assert "<circle" in curve("loss", [5], [0.25])


def test_in_a_notebook_the_output_of_the_cell_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[str] = []
    handle = SimpleNamespace(update=outputs.append)
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: handle)
    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel, display=display))
    progress = progress_display()
    progress.on_message("<columns>")
    assert outputs == ["<div>&lt;columns&gt;</div>"]


def test_outside_a_notebook_there_is_no_output_to_draw_in() -> None:
    assert notebook_output() is None
    assert isinstance(progress_display(), Progress)
