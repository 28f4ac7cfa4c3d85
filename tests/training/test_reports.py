"""What a run writes down of itself, whatever the files it reads are called."""

from __future__ import annotations

import json
from pathlib import Path

from seq2see.training.reports import METRICS, Journal, Report, best_report

STRANGE = "/data/\udcff\u2028.png"
"""A path with a byte that is no UTF-8, and a sign that ends lines for some."""


def test_a_path_that_is_no_utf8_ends_no_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path, up_to=None)
    samples = [{"input": STRANGE, "output": "ein Käse", "reference": ""}]
    numbers = {"epoch": 1.0, "seconds": 1.0, "loss": 1.0, "learning_rate": 1.0, "tokens_per_second": 1.0}
    for update in (1, 2):
        journal.write(Report(update=update, gradient_norm=1.0, samples=samples, **numbers))
    lines = (tmp_path / METRICS).read_bytes().decode("utf-8").split("\n")
    assert [json.loads(line)["samples"] for line in lines if line] == [samples, samples]
    assert "Käse" in lines[0], "text stays readable"
    assert best_report(tmp_path)["update"] == 2
