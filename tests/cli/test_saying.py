"""What is said beside the results: notices on stderr, and how far a long command is."""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see import progress
from seq2see.cli import inputs
from seq2see.cli.app import exit_code
from seq2see.errors import Notice
from seq2see.progress import Meter
from tests.commands import Run

Call = Callable[..., Run]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_a_model_cannot_read_is_said_beside_its_answer(call: Call, speller: Path) -> None:
    run = call("predict", speller, "abß", "--json")
    assert run.err == "'ß' is not known to the model: read as <unk>\n"
    assert json.loads(run.out)["input"] == "abß"
    assert call("predict", speller, "abcd").err == ""


def test_a_table_in_chunks_gets_one_line(
    call: Call, speller: Path, stdin: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs.chunked, "__defaults__", (2,))
    expected = "'x' and 'y' are not known to the model: read as <unk> (in 3 of 5 inputs)\n"
    for command in ("predict", "encode"):
        stdin("ax\nab\nxy\nab\nay\n")
        run = call(command, speller)
        assert (len(run.lines), run.err) == (5, expected)
    stdin("ab\nab\nab\n")
    assert call("predict", speller, "--prefix", "Q").err == "prefix: 'Q' is not known to the model: read as <unk>\n"


def test_given_outputs_are_spoken_of_too(call: Call, speller: Path, tmp_path: Path) -> None:
    line = "target: 'Q' is not known to the model: read as <unk>\n"
    assert call("look", speller, "abcd", "--target", "A Q", "--out", tmp_path / "x.json").err.startswith(line)
    assert call("explain", speller, "abcd", "--target", "A Q").err == line
    table = tmp_path / "table.tsv"
    table.write_text("word\tspelled\nabß\tA\nab\tA Q\n", encoding="utf-8")
    assert call("evaluate", speller, "--data", table).err == (
        "'ß' is not known to the model: read as <unk> (in 1 of 2 inputs)\n"
    )
    assert call("score", speller, "--data", table).err.splitlines() == [
        "'source': 'ß' is not known to the model: read as <unk> (in 1 of 2 inputs)",
        "'output': 'Q' is not known to the model: read as <unk> (in 1 of 2 outputs)",
    ]


def test_warnings_of_libraries_are_left_to_those_who_debug(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        warnings.warn("ours", Notice, stacklevel=1)
        warnings.warn("theirs", FutureWarning, stacklevel=1)

    before = warnings.showwarning
    assert exit_code(work) == 0
    assert capsys.readouterr().err == "ours\n"
    assert warnings.showwarning is before


def test_a_meter_tells_how_far_how_fast_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 110.0, 110.1, 120.0, 130.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    meter = Meter(stream)
    for done in (0, 100, 101):
        meter("inputs answered", done, 400)
    meter("outputs scored", 0, 400)
    meter("outputs scored", 200)
    meter.close()
    plain = re.sub(r"\x1b\[[\d?;]*m", "", stream.getvalue())
    states = [line.strip("━╸╺ ") for line in re.split(r"\x1b\[[\d?;]*[A-Za-z]|\r", plain)]
    states = [line for line in states if "inputs" in line or "outputs" in line]
    assert states[:4] == [  # removed at the end
        "0%  0 of 400 inputs answered",
        "25%  100 of 400 inputs answered  10 inputs/s  about 30 s left",
        "0%  0 of 400 outputs scored",
        "200 outputs scored  20 outputs/s",
    ]


def test_a_meter_is_silent_where_nobody_watches() -> None:
    stream = io.StringIO()
    meter = Meter(stream)
    meter("rows predicted", 5)
    meter.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("command", "said"), [("evaluate", "inputs answered"), ("score", "outputs scored"), ("predict", "rows predicted")]
)
def test_long_commands_have_a_meter(
    call: Call, speller: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal)
    options = ["--file", pairs, "--to", tmp_path / "out.tsv"] if command == "predict" else ["--data", pairs]
    call(command, speller, *options)
    assert f" {said}" in terminal.getvalue()
