"""Where a model looks while it writes given outputs, beside where their words are known to come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from seq2see.data.columns import ALIGNMENT, place_of
from seq2see.errors import UserError
from seq2see.evaluation.alignment import Aligned
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.chunks import Told, chunks
from seq2see.search import at_rest

Row = Mapping[str, str]


def aligned(rows: Sequence[Row]) -> list[Row]:
    """The rows whose links are known."""
    return [row for row in rows if ALIGNMENT in row]


def align(bundles: Sequence[Bundle], rows: Sequence[Row], *, told: Told | None = None) -> list[Aligned]:
    """The links of each row, and those the model makes: from each symbol to the place most looked at.

    The outputs are the given ones, all steps at once; `<eos>` is no symbol of a text. An ensemble looks where the mean
    of its models does.
    """
    known = [_links(bundles[0], row, number) for number, row in enumerate(rows, start=1)]
    looks = [_looks(bundle, rows, told) for bundle in bundles]
    made = []
    for links, each in zip(known, zip(*looks, strict=True), strict=True):
        if len({look.shape for look in each}) > 1:
            raise UserError("aer: the models of this ensemble cut an input or an output differently")
        steps, places = each[0].shape
        best = torch.stack(each).mean(0).argmax(-1).tolist() if places else []
        found = [(place, step) for step, place in enumerate(best[: steps - 1])]
        made.append(Aligned(found, *links))
    return made


def _links(bundle: Bundle, row: Row, number: int) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    if bundle.fields.aligning is None:
        raise UserError("aer: the recipe names no column of links; set loss.alignment.column")
    try:
        links = bundle.fields.aligning.links(row)
    except UserError as error:
        raise UserError(f"{place_of(row, number)}: {error}") from None
    return links.sure, links.possible


@torch.inference_mode()
def _looks(bundle: Bundle, rows: Sequence[Row], told: Told | None) -> list[torch.Tensor]:
    """Of each row its looks, (steps, places), real ones alone."""
    name = bundle.recipe.looked_at[0]
    found: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for numbers, batch in chunks(bundle.fields, rows, target=True, told=told):
        batch.rows = numbers
        batch = batch.to(bundle.device)
        with at_rest([bundle.network]):
            step, ready = bundle.network.taught(batch)
        weights, places = step.looks[name].dense().cpu(), ready.looks[name].mask.cpu()
        steps = batch.target.mask.cpu()  # type: ignore[union-attr]
        for place, number in enumerate(numbers):
            found[number] = weights[place][steps[place]][:, places[place]]
    return found
