"""What a model makes of an output that is given: every symbol forced, the probabilities and looks its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seq2see.data.batches import EOS
from seq2see.data.text import TextField
from seq2see.errors import UserError, nearest
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.prefixes import Given, given_ids
from seq2see.pipeline.reaching import check_reach
from seq2see.search import SearchOptions
from seq2see.search.options import Weights


def follow(
    bundles: Sequence[Bundle], row: Mapping[str, str], target: Given, *, oracle: Weights | None = None
) -> Prediction:
    """The prediction a search would have made, had it chosen this output (and looked as `oracle` says)."""
    field = bundles[0].fields.output
    if not isinstance(field, TextField):
        return _label(bundles, row, target if isinstance(target, str) else " ".join(target), oracle)
    ids = given_ids(bundles[0], row, target, what="target")
    ids = ids if ids[-1:] == [EOS] else [*ids, EOS]
    check_reach(bundles[0].recipe, len(ids), f"target: {len(ids)} tokens, <eos> counted")
    options = options_of(
        bundles[0].recipe, beam=1, n_best=1, prefix=ids, oracle=oracle, min_length=0, max_length=len(ids)
    )
    return predict(bundles, [row], options, replace_unknown=False, maps=True)[0]


def _label(bundles: Sequence[Bundle], row: Mapping[str, str], target: str, oracle: Weights | None) -> Prediction:
    labels = bundles[0].fields.output.vocabulary.symbols
    if target not in labels:
        raise UserError(f"unknown label '{target}'{nearest(target, labels)}; allowed: {', '.join(labels)}")
    found = predict(bundles, [row], SearchOptions(beam=len(labels), n_best=len(labels), oracle=oracle), maps=True)[0]
    if found.label == target:
        return replace(found, alternatives=[])
    chosen = next(one for one in found.alternatives if one.text == target)
    return replace(
        found,
        label=target,
        tokens=chosen.tokens,
        log_probability=chosen.log_probability,
        score=chosen.score,
        looks=chosen.looks or found.looks,
        alternatives=[],
    )
