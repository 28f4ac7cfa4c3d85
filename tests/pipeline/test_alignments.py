"""Links between input and output, and times of words: how they are written, what is wrong with them and where, and what
is learned from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from seq2see.data.batches import TimeSpans
from seq2see.data.columns import group_references
from seq2see.data.video_files import VideoInput
from seq2see.errors import UserError
from seq2see.modalities.base import Example
from seq2see.modalities.text import TextOutput, TextOutputField
from seq2see.modalities.video import VideoField
from seq2see.pipeline.alignments import TimeReader, parse_links
from seq2see.recipe import load_recipe
from seq2see.recipe.schema import AlignmentSettings
from seq2see.training.dataset import read_corpus
from tests.clips import counted, written
from tests.system.small import write_table

GOOD = {"source": "a b c", "output": "x y", "links": "0-0 2-0 1?1"}


def recipe(**source: Any) -> Any:
    return load_recipe(
        {"inputs": {"source": source}, "loss": {"alignment": {"column": "links"}}, "data": {"dev_share": 0.3}}
    )


def test_links_are_sure_or_possible() -> None:
    links = parse_links("0-0 2-1 1?1", places=3, symbols=2)
    assert links.sure == {(0, 0), (2, 1)}
    assert links.possible == {(0, 0), (2, 1), (1, 1)}
    assert not parse_links("", places=3, symbols=2).possible


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("0-0 1", r"'1' .*; allowed: pairs like 0-0 or, if merely possible, 0\?0"),
        ("0-x", "'0-x' is not a link"),
        ("-1-0", "'-1-0' is not a link"),
        ("3-0", "'3-0': the input has 3 symbols, counted from 0: 0 to 2"),
        ("0-0 0-2", "'0-2': the output has 2 symbols, counted from 0: 0 to 1"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_column_and_value(tmp_path: Path, links: str, said: str) -> None:
    table = write_table(tmp_path / "pairs.tsv", [GOOD, {**GOOD, "links": links}, {**GOOD, "source": "a"}])
    with pytest.raises(UserError, match=rf"pairs\.tsv, line 3: column 'links': {said}"):
        read_corpus(recipe(), table, dev=write_table(tmp_path / "dev.tsv", [GOOD]))


def test_a_table_without_the_column_is_refused(tmp_path: Path) -> None:
    table = write_table(tmp_path / "pairs.tsv", [{"source": "a", "output": "x", "link": "0-0"}] * 3)
    with pytest.raises(UserError, match=r"no column 'links' \(did you mean 'link'\?\), which loss.alignment.column"):
        read_corpus(recipe(), table)


def test_columns_are_found_beside_the_links(tmp_path: Path) -> None:
    """Links are never taken for an input or an output, whatever the other columns are called."""
    rows = [{"links": "0-0", "en": word, "de": word.upper()} for word in "abcdefgh"]
    corpus = read_corpus(recipe(), write_table(tmp_path / "pairs.tsv", rows))
    assert corpus.notes[0].startswith("columns: 'en' -> 'de'")


def test_each_step_looks_evenly_at_its_sure_links(tmp_path: Path) -> None:
    rows = [GOOD, {"source": "a b", "output": "x y z", "links": "1-2"}, {"source": "c", "output": "x", "links": ""}]
    table = write_table(tmp_path / "pairs.jsonl", rows)
    dev = write_table(tmp_path / "dev.tsv", [GOOD])
    corpus = read_corpus(recipe(), table, dev=dev)
    truth = corpus.train.batch([0, 1, 2]).alignment  # type: ignore[union-attr]
    assert truth is not None
    assert truth.shape == (3, 4, 3)
    assert truth[0, 0].tolist() == [0.5, 0.0, 0.5]
    assert truth[0, 1].tolist() == [0.0, 0.0, 0.0], "a link that is merely possible teaches nothing"
    assert truth[1].nonzero().tolist() == [[2, 1]]
    assert truth[2].sum() == 0


def test_links_to_what_is_cut_off_are_left(tmp_path: Path) -> None:
    table = write_table(tmp_path / "pairs.tsv", [GOOD] * 2)
    corpus = read_corpus(recipe(max_length=2), table, dev=table)
    assert corpus.train.batch([0]).alignment.nonzero().tolist() == [[0, 0, 0]]  # type: ignore[union-attr]


def test_links_do_not_tell_inputs_apart() -> None:
    rows = [{"source": "a", "output": "x", "output.alignment": links} for links in ("0-0", "")]
    assert len(group_references(rows)) == 1
    assert group_references(rows)[0].inputs == {"source": "a"}


# ---------------------------------------------------------------- times

TIMES = json.dumps([["Yes", 0.25, 0.5], ["sir", 0.5, 1.5]])


def timed_recipe(*, alignment: dict[str, Any] | None = None, **output: Any) -> Any:
    return load_recipe(
        {
            "inputs": {"audio": {"kind": "sound", "rate": 8000}},
            "output": {"tokens": "word", "case": "lower", **output},
            "loss": {"alignment": {"column": "times", **(alignment or {})}},
            "data": {"dev_share": 0.3},
        }
    )


def sounds(folder: Path, *times: str) -> Path:
    """A table with a sound of two seconds in each row."""
    soundfile.write(folder / "a.wav", np.random.default_rng(1).normal(0, 0.1, 16_000), 8000)
    rows = [{"audio": "a.wav", "output": "Yes sir", "times": one} for one in times]
    return write_table(folder / "sounds.tsv", rows)


def test_times_are_shares_of_the_sound_whatever_its_places(tmp_path: Path) -> None:
    corpus = read_corpus(timed_recipe(), table := sounds(tmp_path, TIMES, "[]"), dev=table)
    spans = corpus.train.batch([0, 1]).alignment  # type: ignore[union-attr]
    assert isinstance(spans, TimeSpans)
    torch.testing.assert_close(spans.values[0], torch.tensor([[0.125, 0.25], [0.25, 0.75], [0, 0]]))  # the last: <eos>
    assert not spans.values[1].any()
    places = torch.tensor([[True] * 8, [True] * 4 + [False] * 4])
    inside = TimeSpans(spans.values[:1].expand(2, -1, -1)).inside(places).long().tolist()
    assert inside[0] == [[0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0], [0] * 8]
    assert inside[1] == [[1, 0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0], [0] * 8]


def test_the_letters_of_a_word_share_its_time(tmp_path: Path) -> None:
    recipe = timed_recipe(tokens="character")
    corpus = read_corpus(recipe, table := sounds(tmp_path, TIMES, TIMES), dev=table)
    spans = corpus.train.batch([0]).alignment.values[0]  # type: ignore[union-attr]
    assert [round(start, 3) for start, _ in spans.tolist()] == [0.125] * 3 + [0.0] + [0.25] * 3 + [0.0]


def test_times_in_frames_of_a_video(tmp_path: Path) -> None:
    clip = written(tmp_path / "a.mp4", counted(20), rate=10)
    field = VideoField(VideoInput(height=8, width=8))
    begin, end = field.extent(str(clip))
    assert (begin, end) == pytest.approx((0.0, 2.0), abs=0.01)
    settings = AlignmentSettings(column="times", rate=10)
    text = TextOutputField(TextOutput(tokens="word"), output=True)
    reader = TimeReader(settings, "video", field, text)
    row = {"output.alignment": '[["up", 5, 10]]'}
    examples = {"video": Example(field, str(clip), []), "output": Example(text, "up", [], ["up"])}
    assert reader.spans(row, examples)[0] == pytest.approx((0.25, 0.5), abs=0.01)
    assert reader.links(row, examples, places=8).possible == {(2, 0), (3, 0)}


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ("0-0", "'0-0' is not a list of times"),
        ('[["Yes", 0.5]]', r'\["Yes", 0.5\] is not the time of a word; allowed: \[word, start, end\]'),
        ('[["Yes", 0.5, 0.25]]', ".* is not the time of a word"),
        ('[["Yes", 0, NaN]]', ".* is not the time of a word"),
        (f'[["Yes", 0, 1{"0" * 400}]]', ".* is not the time of a word"),
        ('[["No", 0.1, 0.2]]', "'No' is not the next word of the output, 'Yes sir'"),
        ('[["Yes", 2.5, 3]]', "'Yes' begins at 2.5, and 'audio' ends at 2; .* 1 to a second"),
    ],
)
def test_times_that_cannot_be_are_named(tmp_path: Path, times: str, said: str) -> None:
    table = sounds(tmp_path, TIMES, times)
    with pytest.raises(UserError, match=rf"sounds\.tsv, line 3: column 'times': {said}"):
        read_corpus(timed_recipe(), table, dev=table)


def test_times_in_another_unit_are_noticed(tmp_path: Path) -> None:
    table = sounds(tmp_path, TIMES, "")
    recipe = timed_recipe(alignment={"rate": 25})
    with pytest.raises(
        UserError,
        match=r"sounds\.tsv: column 'times': .* end within 3.0% of 'audio'; .* 25 to a second, set loss.alignment",
    ):
        read_corpus(recipe, table, dev=table)


def test_a_column_that_is_optional_may_be_missing(tmp_path: Path) -> None:
    table = sounds(tmp_path, TIMES, "")
    assert not read_corpus(timed_recipe(), table, dev=table).train.batch([1]).alignment.values.any()  # type: ignore[union-attr]
    plain = write_table(tmp_path / "plain.tsv", [{"audio": "a.wav", "output": "Yes sir"}] * 3)
    with pytest.raises(UserError, match=r"no column 'times', which loss.alignment.column names"):
        read_corpus(timed_recipe(), plain, dev=plain)
    corpus = read_corpus(timed_recipe(alignment={"optional": True}), plain, dev=plain)
    assert any("no column 'times'" in note for note in corpus.notes)
    batch = corpus.train.batch([0])  # type: ignore[union-attr]
    assert not batch.alignment.values.any()  # type: ignore[union-attr]
