"""Links between input and output: how they are written, what is wrong with them and where, and what is learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seq2see.data.columns import group_references
from seq2see.errors import UserError
from seq2see.pipeline.fields import parse_links
from seq2see.recipe import load_recipe
from seq2see.training.dataset import read_corpus
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
        ("0-0 1", r"'1' is no link; allowed: pairs like 0-0 or, if merely possible, 0\?0"),
        ("0-x", "'0-x' is no link"),
        ("-1-0", "'-1-0' is no link"),
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
