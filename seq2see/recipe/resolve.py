"""What follows from the rest of a recipe and need not be written down."""

from __future__ import annotations

import copy
from typing import Any

from seq2see.data.image_files import ImageInput
from seq2see.modalities import OutputSettings
from seq2see.modalities.image import ImageOutput
from seq2see.recipe.schema import Recipe
from seq2see.recipe.sets import completed
from seq2see.recipe.transformers import going_on
from seq2see.recipe.units import filled_in
from seq2see.settings.decoders import BY_OUTPUT
from seq2see.settings.encoders import USUAL

SILENT = {"encoder": "recurrent", "embedding": "learned"}
"""The kind of a group of keys that does not say it."""


SYMBOLS = ("recurrent", "hierarchical")
"""Encoders that read symbols: no default for an input that is a file."""

BOTH = "transformer"
"""Reads symbols where some input of the recipe has them, and files otherwise."""


def inherited(raw: dict[str, Any]) -> dict[str, Any]:
    """A copy in which an input's own `encoder` says only how it differs from the recipe's, which fills in the rest.

    >>> inherited({"encoder": {"cell": "lstm"}, "inputs": {"x": {"encoder": {"size": 8}}}})["inputs"]["x"]["encoder"]
    {'cell': 'lstm', 'size': 8}
    """
    raw = copy.deepcopy(raw)
    common, inputs = raw.get("encoder"), raw.get("inputs")
    if isinstance(inputs, dict):
        for given in inputs.values():
            _read_as_usual(given, common, symbols=any(map(_reads_symbols, inputs.values())))
    if isinstance(common, dict) and isinstance(inputs, dict):
        for given in inputs.values():
            if isinstance(given, dict) and isinstance(given.get("encoder"), dict):
                given["encoder"] = _over(common, given["encoder"])
    return raw


def kind_word(given: dict[str, Any], default: str = "") -> str:
    """The `kind` of a group of keys; the default where it has none, nothing where it is no word."""
    kind = given.get("kind", default)
    return kind if isinstance(kind, str) else ""


def _reads_symbols(given: Any) -> bool:
    """Whether an input has symbols, and the recipe's own encoder to read them."""
    if not isinstance(given, dict) or kind_word(given) in USUAL:
        return False
    own = given.get("encoder")
    return not isinstance(own, dict) or "kind" not in own


def _read_as_usual(given: Any, common: Any, *, symbols: bool) -> None:
    """A file has an encoder of the kind that reads such files, where the recipe's own is one for texts; symbols:
    whether it has any to read."""
    usual = USUAL.get(kind_word(given)) if isinstance(given, dict) else None
    own = given.get("encoder") if usual else None
    if usual is None or not isinstance(own, dict | None) or "kind" in (own or {}):
        return
    kind = common.get("kind", SILENT["encoder"]) if isinstance(common, dict) else SILENT["encoder"]
    if kind in SYMBOLS or (kind == BOTH and (symbols or usual == USUAL["vector"])):
        given["encoder"] = {"kind": usual, **(own or {})}


def _over(common: dict[str, Any], own: dict[str, Any], *, key: str = "encoder") -> dict[str, Any]:
    """Settings of the same kind are filled in, groups of keys inside them too; those of another kind stand alone."""
    kind = common.get("kind", SILENT.get(key))
    if own.get("kind", kind) != kind:
        return own
    inner = {
        name: _over(common[name], value, key=name)
        for name, value in own.items()
        if isinstance(common.get(name), dict) and isinstance(value, dict)
    }
    return {**common, **own, **inner}


def resolved(recipe: Recipe) -> Recipe:
    """The recipe made complete where it is silent. A contradiction that was asked for stays as it is, to be refused.

    Without inputs that have places there is nothing to look at, so attention is off; an output brings its own decoder,
    and a picture that comes out is as large as the one that goes in; all inputs with places are looked at; without
    attention, `start` gives the decoder every input that nothing else gives it, unless it was said to be none; encoders
    of sets have no positions; a transformer that reads a stream looks back so far, and one that reads a file has a
    place for so much of it.

    >>> resolved(Recipe()).attention.score
    'none'
    """
    recipe = _kinds(recipe)
    attention, decoder = recipe.attention, recipe.decoder
    if attention.score != "none" and attention.over is None:
        attention = attention.model_copy(update={"over": recipe.looked_at})
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if attention.score == "none" and unused and not unconditioned(recipe):
        decoder = decoder.model_copy(update={"start": [*recipe.started_by, *unused]})
    return going_on(filled_in(completed(recipe.model_copy(update={"attention": attention, "decoder": decoder}))))


def unconditioned(recipe: Recipe) -> dict[str, str]:
    """{path: what is wrong} where `start: none` was asked for and leaves the decoder without some of the inputs."""
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if recipe.attention.score != "none" or recipe.decoder.start != "none" or not unused:
        return {}
    lost = ", ".join(unused)
    instead = ", or decoder.every_step" if not recipe.output.one_step else ""
    reason = f"with attention off, none leaves the decoder nothing of {lost}; allowed: {lost}{instead}, or attention"
    return {"decoder.start": reason}


def _kinds(recipe: Recipe) -> Recipe:
    attention, decoder = recipe.attention, recipe.decoder
    if not recipe.with_places and "score" not in attention.model_fields_set:
        attention = attention.model_copy(update={"score": "none"})
    if "kind" not in decoder.model_fields_set:
        decoder = decoder.model_copy(update={"kind": BY_OUTPUT[recipe.output.kind][0]})
    output = _as_large(recipe.output, recipe)
    return recipe.model_copy(update={"attention": attention, "decoder": decoder, "output": output})


def _as_large(output: OutputSettings, recipe: Recipe) -> OutputSettings:
    """A picture to give, of the size and colour of the first one that goes in, as far as the recipe does not say."""
    first = next((given for given in recipe.inputs.values() if isinstance(given, ImageInput)), None)
    if not isinstance(output, ImageOutput) or first is None:
        return output
    keys = ("height", "width", "fit", "colour") if first.width else ("height", "colour")
    return output.model_copy(update={key: getattr(first, key) for key in keys if key not in output.model_fields_set})
