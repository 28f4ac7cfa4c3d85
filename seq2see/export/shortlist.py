"""A vocabulary shortlist: the output symbols that are worth a probability for an input, learned from training pairs.

For each symbol of a text input, the output symbols that translate it best, by the word translation probabilities of
IBM Model 1 (Brown et al. 1993: The mathematics of statistical machine translation); besides, the most frequent symbols
of the output for every input. The runtime multiplies the rows of V of these symbols alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from seq2see.data.columns import OUTPUT
from seq2see.data.vocabulary import EOS, UNK
from seq2see.decoders.output_heads import SoftmaxHead
from seq2see.errors import UserError, counted
from seq2see.modalities.base import file_of
from seq2see.modalities.text import TextField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields

ALWAYS = 1024
"""Frequent symbols of the output that every shortlist has."""
EACH = 16
"""Symbols of the output for a symbol of an input."""
LEAST = 1e-3
"""The least probability of a translation."""
ROUNDS = 5
"""Of expectation and maximisation."""
LARGEST, TINY = 127, 1e-20
"""The largest number of 8 bits, and the least that a row of V is divided by."""
MOST_PAIRS = 5_000_000
"""Pairs of an input's and an output's symbol that are learned from: some 40,000 sentences."""


@dataclass
class Shortlist:
    """frequent: symbols for every input; translations: {input: for each symbol at most EACH, filled up by -1}."""

    frequent: Int[ndarray, " always"]
    translations: dict[str, Int[ndarray, "source each"]]
    pairs: int

    def __str__(self) -> str:
        mean = ", ".join(
            f"{(each >= 0).sum(1).mean():.0f} for a symbol of {name}" for name, each in self.translations.items()
        )
        return f"shortlist: {len(self.frequent)} frequent symbols and {mean}, learned from {counted(self.pairs, 'row')}"

    def save(self, folder: Path, head: SoftmaxHead, *, int8: bool) -> list[Path]:
        """Write the shortlist, and the output layer whose rows it chooses; returns the files."""
        arrays = {
            **{folder / f"{name.replace('/', '_')}.npy": each for name, each in output_layer(head, int8=int8).items()},
            folder / "frequent.npy": self.frequent,
            **{file_of(folder, "shortlist", name, suffix=".npy"): each for name, each in self.translations.items()},
        }
        for path, array in arrays.items():
            np.save(path, array, allow_pickle=False)
        return list(arrays)


WEIGHTS, SCALES, BIAS = "output/weights", "output/scales", "output/bias"
"""Inputs of the graph of a step that has a shortlist."""


def output_layer(head: SoftmaxHead, *, int8: bool) -> dict[str, ndarray]:
    """V (symbols, width) and c (symbols,); int8: V is weights (width, symbols) of 8 bits times scales (symbols,)."""
    V, c = (each.detach().cpu().float().numpy() for each in (head.V, head.c))
    if not int8:
        return {WEIGHTS: np.ascontiguousarray(V), BIAS: c}
    scales = np.maximum(np.abs(V).max(1), TINY) / LARGEST
    return {WEIGHTS: np.ascontiguousarray(np.rint(V / scales[:, None]).T.astype(np.int8)), SCALES: scales, BIAS: c}


def check_shortlist(bundle: Bundle) -> None:
    """Refuse a shortlist where there is nothing to choose from or by."""
    recipe, head = bundle.recipe, bundle.network.head
    if recipe.output.one_step or not isinstance(bundle.fields.output, TextField):
        raise UserError(f"--shortlist: output.kind {recipe.output.kind} has no symbols to choose from; allowed: text")
    if type(head) is not SoftmaxHead:
        raise UserError("--shortlist: decoder.copy_from mixes the vocabulary with words of the input; allowed: none")
    if not _text_inputs(bundle.fields):
        raise UserError("--shortlist: symbols are chosen by the symbols of a text, and this model reads none")
    if head.symbols <= ALWAYS + EACH:
        raise UserError(
            f"--shortlist: the output has {head.symbols} symbols, all of which a shortlist would have; allowed: more "
            f"than {ALWAYS + EACH:,}"
        )


def _text_inputs(fields: Fields) -> dict[str, TextField]:
    return {name: field for name, field in fields.inputs.items() if isinstance(field, TextField)}


def learn_shortlist(bundle: Bundle, rows: Sequence[Mapping[str, str]]) -> Shortlist:
    """Learn which symbols of the output go with which symbols of each text input; of many rows from some, at random."""
    fields, symbols = bundle.fields, bundle.network.head.symbols
    inputs = _text_inputs(fields)
    texts: dict[str, list[ndarray]] = {name: [] for name in inputs}
    targets: list[ndarray] = []
    left = MOST_PAIRS
    for number in np.random.default_rng(0).permutation(len(rows)):
        row = rows[number]
        target = np.unique(fields.text_output.ids(row[OUTPUT]))
        sources = {name: np.unique(field.ids(row[name])) for name, field in inputs.items()}
        left -= len(target) * (1 + max(map(len, sources.values())))
        if left < 0 and targets:
            break
        targets.append(target)
        for name, source in sources.items():
            texts[name].append(source)
    if not targets:
        raise UserError("--shortlist: the table has no rows to learn from")
    translations = {
        name: best_translations(sources, targets, size=inputs[name].size, symbols=symbols, most=EACH)
        for name, sources in texts.items()
    }
    counts = np.bincount(np.concatenate(targets).astype(np.int64), minlength=symbols)
    counts[[UNK, EOS]] = counts.max() + 1
    frequent = np.sort(np.argsort(-counts, kind="stable")[:ALWAYS]).astype(np.int32)
    return Shortlist(frequent, translations, len(targets))


def best_translations(
    sources: list[Int[ndarray, " _"]], targets: list[Int[ndarray, " _"]], *, size: int, symbols: int, most: int
) -> Int[ndarray, "size most"]:
    """For each of `size` source symbols the likeliest target symbols, best first, -1 where there are fewer."""
    keys, probabilities = translation_table(sources, targets, size=size, symbols=symbols)
    source, target = np.divmod(keys, symbols)
    real = (probabilities >= LEAST) & (source < size)
    source, target, probabilities = source[real], target[real], probabilities[real]
    order = np.lexsort((target, -probabilities, source))
    source, target = source[order], target[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    best = np.full((size, most), -1, dtype=np.int32)
    kept = rank < most
    best[source[kept], rank[kept]] = target[kept]
    return best


def translation_table(
    sources: list[Int[ndarray, " _"]], targets: list[Int[ndarray, " _"]], *, size: int, symbols: int
) -> tuple[Int[ndarray, " pairs"], Float[ndarray, " pairs"]]:
    """IBM Model 1: t(y | x) of every pair of symbols that occur in a row, as (x * symbols + y, probability).

    Expectation: a symbol y of a row is shared out among the row's x, and the empty word `size`, by t(y | x).
    Maximisation: t(y | x) = what x has of y, over all that x has.
    """
    ends = [np.append(source, size) for source in sources]
    each = [(end[None, :] * symbols + target[:, None]).ravel() for end, target in zip(ends, targets, strict=True)]
    widths = np.repeat([len(end) for end in ends], [len(target) for target in targets])
    keys, pair = np.unique(np.concatenate(each).astype(np.int64), return_inverse=True)
    asked = np.repeat(np.arange(len(widths)), widths)
    of_source = keys // symbols
    table: Float[ndarray, " pairs"] = np.full(len(keys), 1.0)
    for _ in range(ROUNDS):
        shares = table[pair]
        shares /= np.bincount(asked, shares)[asked]
        counts = np.bincount(pair, shares)
        table = counts / np.bincount(of_source, counts)[of_source]
    return keys, table
