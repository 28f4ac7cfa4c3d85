"""What cannot work where inputs hold several texts, and where something smaller than an input is looked at."""

from __future__ import annotations

from seq2see.errors import nearest
from seq2see.recipe.schema import Recipe, names
from seq2see.settings.base import ENCODERS, EncoderSettings


def unknown_places(recipe: Recipe) -> list[str]:
    """Names in `attention.over` that are neither inputs nor further places of one, as far as it has an encoder."""
    further = {name: [f"{name}.{part}" for part in recipe.encoder_of(name).further] for name in recipe.inputs}
    known = [one for name, parts in further.items() for one in (name, *parts)]
    return [
        f"attention.over: there is no input '{name}'{nearest(name, known)}; allowed: {', '.join(known) or 'no input'}"
        f"{_makeable(recipe, name)}"
        for name in names(recipe.attention.over)
        if name not in known and not _may_have(recipe, name, unread=_unread(recipe))
    ]


def _makeable(recipe: Recipe, place: str) -> str:
    """How an input gets such places, where its encoder can make them and was not asked to."""
    name, _, part = place.partition(".")
    if name not in recipe.inputs or part not in type(recipe.encoder_of(name)).model_fields:
        return ""
    return f"; {recipe.encoder_path(name)}.{part}=true makes {place}" if part == "regions" else ""


def _may_have(recipe: Recipe, place: str, *, unread: list[str]) -> bool:
    """Whether it is a further place of an input whose encoder is the user's own, known once that is built, or of one
    whose encoder has yet to be found."""
    name, _, part = place.partition(".")
    if not part or name not in recipe.inputs:
        return False
    return recipe.encoder_of(name).own or recipe.reader_of(name) in unread


def unread(recipe: Recipe) -> list[str]:
    """Inputs whose encoder reads another kind of input."""
    found = []
    for name in _unread(recipe):
        kind, encoder = recipe.inputs[name].kind, recipe.encoder_of(name).kind
        found.append(
            f"{recipe.encoder_path(name)}.kind: {encoder} does not read '{name}', an input of kind {kind}; "
            f"allowed: {', '.join(readers_of(kind))}{_by_level(recipe, name)}"
        )
    return found


def _unread(recipe: Recipe) -> list[str]:
    """Their names, without those that are read by another one's encoder."""
    found = []
    for name, given in recipe.inputs.items():
        if recipe.reader_of(name) == name and given.kind not in recipe.encoder_of(name).reads:
            found.append(name)
    return found


def _by_level(recipe: Recipe, name: str) -> str:
    """How an input is read by self-attention, where that was meant and the kind of the encoder is not what says it."""
    if recipe.encoder_of(name).kind != "transformer":
        return ""
    key = {"texts": "levels", "video": "over_time"}.get(recipe.inputs[name].kind)
    return f" with {recipe.encoder_path(name)}.{key} transformer" if key else ""


def unused_sentences(recipe: Recipe) -> list[str]:
    """Documents of which words alone are used: their sentences would be read for nothing. (The regions of a frame have
    the frame's state in them.)"""
    used = {*recipe.started_by, *recipe.fed_every_step, *recipe.looked_at}
    alone = [name for name in recipe.looked_at if "." in name and name.partition(".")[0] not in used]
    alone = [name for name in alone if recipe.inputs[name.partition(".")[0]].kind == "texts"]
    alone = [name for name in alone if not recipe.encoder_of(name.partition(".")[0]).own]
    if recipe.attention.through is not None:
        return []
    return [
        f"attention.over: {name} alone leaves the sentences unused; set attention.through to sentences, or name the "
        "input in decoder.start, or read it as kind text"
        for name in alone
    ]


def through(recipe: Recipe) -> list[str]:
    """Looking at words through their sentences is one look at all words of a document."""
    settings = recipe.attention
    if settings.through is None:
        return []
    found = []
    for name in recipe.looked_at:
        if "." not in name:
            parts = [f"{name}.{part}" for part in recipe.encoder_of(name).further]
            instead = f"; attention.over: {', '.join(parts)}" if parts else ""
            found.append(f"attention.through: '{name}' has no places inside larger ones{instead}")
    return found


def unwindowed(recipe: Recipe) -> list[str]:
    """Windows among sentences, which are neither a line of symbols nor a grid."""
    scope, found = recipe.attention.scope, []
    for name in recipe.looked_at:
        if scope != "global" and recipe.view_of(name)[1] == "sentences":
            used = name in (*recipe.started_by, *recipe.fed_every_step)
            instead = f"attention.over {name}.words" + ("" if used else f" with decoder.start {name}")
            said = f"{scope} is a window in a line or a grid, and the places of '{name}' are sentences"
            found.append(f"attention.scope: {said}; allowed: global, or {instead}")
    return found


def unsuited(recipe: Recipe) -> list[str]:
    """A kind of the recipe's encoder that none of its inputs can be read by: they were given encoders of their own, by
    the user or as such inputs are read, so that it would stand there for nothing."""
    settings = recipe.encoder
    silent = settings.kind == EncoderSettings().kind or settings.own
    used = any(recipe.encoder_path(name) == "encoder" for name in recipe.inputs)
    if silent or used or any(given.kind in settings.reads for given in recipe.inputs.values()):
        return []
    return [
        f"encoder.kind: {settings.kind} does not read '{name}', an input of kind {given.kind}; allowed: "
        f"{', '.join(readers_of(given.kind))}"
        for name, given in recipe.inputs.items()
    ]


def readers_of(kind: str) -> list[str]:
    """Kinds of encoders that read such an input: ours, and those that plug-ins brought."""
    return [name for name, settings in ENCODERS.items() if kind in settings.reads]
