"""Recipes with series: channels, and settings that do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.recipe import load_recipe
from tests.recipe.refusing import Refused


def with_series(**settings: Any) -> dict[str, Any]:
    return {"inputs": {"x": {"kind": "series", **settings}}, "output": {"kind": "label"}}


FORECAST: dict[str, Any] = {"inputs": {"x": {"kind": "series"}}, "output": {"kind": "series"}}
LOGISTIC = {"decoder": {"reconstruction": {"output": "logistic"}}}

LEARNED = {"encoder": {"kind": "transformer", "positions": "learned"}}

REFUSED = [
    Refused(
        {**with_series(longest=0), **LEARNED},
        {"encoder.longest": "learned-positions"},
        "learned inputs.x.longest sinusoidal",
    ),
    Refused(
        {**with_series(longest=4000), **LEARNED},
        {"encoder.longest": "learned-positions"},
        "512 4,000 steps inputs.x.longest 1000",
    ),
    Refused(with_series(time="t"), {"inputs.x.time": "no-effect"}, "source cells"),
    Refused(with_series(header=True), {"inputs.x.header": "no-effect"}, "source cells"),
    Refused(with_series(pooling="first"), {"inputs.x.pooling": "no-effect"}, "stride 1"),
    Refused(with_series(longest=0, keep="first"), {"inputs.x.keep": "no-effect"}, "longest 0"),
    Refused(with_series(augment={"time_width": 3}), {"inputs.x.augment.time_width": "no-effect"}, "time_masks 0"),
    Refused(with_series(names=["a", "a"]), {"inputs.x.names": "channel-names"}, "a"),
    Refused(with_series(source="files", names=["a"], time="a"), {"inputs.x.time": "channel-names"}, "a"),
    Refused(with_series(stride=0), {"inputs.x.stride": "value"}, "0"),
    Refused(with_series(augment={"scale": 1}), {"inputs.x.augment.scale": "value"}, "1"),
    Refused(
        {**FORECAST, **LOGISTIC},
        {"decoder.reconstruction.output": "reconstruction"},
        "logistic linear output.normalise none",
    ),
    Refused({**FORECAST, "output": {"kind": "series", "names": ["a", "a"]}}, {"output.names": "channel-names"}, "a"),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_recipes_of_series(case: Refused) -> None:
    case.check()


def test_a_forecast_that_is_not_normalised_may_be_logistic() -> None:
    recipe = load_recipe({**FORECAST, **LOGISTIC, "output": {"kind": "series", "normalise": "none"}})
    assert recipe.decoder.kind == "reconstruction"
