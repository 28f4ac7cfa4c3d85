"""Of models that are equally right, the one less surprised by the outputs is the better one."""

from __future__ import annotations

from pathlib import Path

from tests.training.tiny import ROWS, journal, run, words


def test_a_rate_that_stands_still_does_not_end_a_run_that_learns(tmp_path: Path) -> None:
    how = ["training.report_every=2", "training.patience=3", "evaluation.metrics=[exact]"]
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "run", how, updates=16)
    lines = journal(tmp_path / "run")
    assert {line["dev"]["exact"] for line in lines} == {0.0}
    assert [line["update"] for line in lines] == list(range(2, 17, 2))
    assert lines[-1]["dev"]["perplexity"] < lines[0]["dev"]["perplexity"]
    assert lines[-1]["best"]
