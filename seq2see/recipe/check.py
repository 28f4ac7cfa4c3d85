"""Combinations that cannot work, each with the path of its key: found before anything is built."""

from __future__ import annotations

from seq2see.errors import nearest
from seq2see.modalities.text import TextOutput
from seq2see.recipe.documents import through, unused_sentences
from seq2see.recipe.paths import read_by
from seq2see.recipe.resolve import unconditioned
from seq2see.recipe.schema import Recipe, names
from seq2see.settings.attention import LOOKING_BACK, SCORES
from seq2see.settings.base import MOST_LAYERS, Scalar, TextSettings
from seq2see.settings.decoders import BY_OUTPUT, ONE_STEP, WRITERS
from seq2see.settings.encoders import EncoderSettings, HierarchicalEncoderSettings, OwnEncoderSettings, embedding_of
from seq2see.settings.plugins import BROUGHT, DECODERS, Own

RESERVED = ("none", "output", "training")
"""Words with a meaning of their own wherever the name of an input could stand; torch claims the last one."""


def _names(recipe: Recipe) -> list[str]:
    found = []
    known = list(recipe.inputs)
    for name in known:
        if not name.isidentifier() or name in RESERVED or name.startswith("_"):
            found.append(
                f"inputs.{name}: not a name for an input; allowed: letters, digits and _, a letter first, "
                f"but not {', '.join(RESERVED)}"
            )
    uses = {
        "decoder.start": recipe.decoder.start,
        "decoder.every_step": recipe.decoder.every_step,
        "decoder.copy_from": recipe.decoder.copy_from,
    }
    for path, given in uses.items():
        for name in names(given):
            if name not in known:
                allowed = ", ".join([*known, "none"])
                found.append(f"{path}: there is no input '{name}'{nearest(name, known)}; allowed: {allowed}")
    return found


def _shares(recipe: Recipe) -> list[str]:
    found = []
    texts = {name: given for name, given in recipe.inputs.items() if isinstance(given, TextSettings)}
    fields = texts | ({"output": recipe.output} if isinstance(recipe.output, TextOutput) else {})
    for name, given in fields.items():
        shared = given.share
        if shared is None:
            continue
        path = f"{'inputs.' if name != 'output' else ''}{name}.share"
        if shared not in texts or shared == name or texts[shared].share:
            allowed = ", ".join(other for other in texts if other != name and not texts[other].share)
            found.append(
                f"{path}: '{shared}' is no other input with a vocabulary of its own; allowed: {allowed or 'none'}"
            )
        elif given.tokens != texts[shared].tokens:
            theirs = texts[shared].tokens
            found.append(f"{path}: tokens are {given.tokens} here and {theirs} in {shared}: must be the same")
        elif name != "output" and recipe.inputs[name].kind != recipe.inputs[shared].kind:
            own, kind = recipe.inputs[name].kind, recipe.inputs[shared].kind
            found.append(f"{path}: kind is {own} here and {kind} in {shared}: one encoder reads one kind")
    return found


def _attention(recipe: Recipe) -> list[str]:
    score = recipe.attention.score
    if score == "none":
        return []
    if score not in SCORES:
        allowed = [*SCORES, "none"]
        known = f"allowed: {', '.join(allowed)}, {BROUGHT}"
        return [f"attention.score: unknown score '{score}'{nearest(score, allowed)}; {known}"]
    if not recipe.inputs:
        return [f"attention.score: {score} has nothing to look at in a model without inputs; allowed: none"]
    if not recipe.with_places:
        said = f"{score} has nothing to look at: a vector is a single place, at which every look is the same"
        return [f"attention.score: {said}; allowed: none"]
    if not recipe.looked_at:
        return ["attention.over: names no input; to switch attention off, set attention.score to none"]
    if score in LOOKING_BACK and recipe.output.one_step:
        allowed = [one for one in SCORES if one not in LOOKING_BACK]
        said = f"{score} goes by earlier looks, and {recipe.output.said} is decoded in one step, with none before it"
        return [f"attention.score: {said}; allowed: {', '.join([*allowed, 'none'])} (additive is the same there)"]
    if found := [*through(recipe), *unused_sentences(recipe)]:
        return found
    if not _seen(recipe):
        return [
            "decoder.output: state leaves the context unseen; allowed: all"
            + (", or attention.input_feeding true" if recipe.decoder.kind == "recurrent" else "")
        ]
    return []


def _seen(recipe: Recipe) -> bool:
    """Whether what is looked at goes anywhere: into the output layer, or into the recurrence."""
    recurrence = recipe.attention.query == "previous" or recipe.attention.input_feeding
    writes = {"recurrent": recurrence} | dict.fromkeys(ONE_STEP, False)
    return recipe.decoder.output == "all" or writes.get(recipe.decoder.kind, True)


def _decoder(recipe: Recipe) -> list[str]:
    found, kind = [], recipe.decoder.kind
    if kind not in WRITERS and kind not in DECODERS:
        known = [*WRITERS, *DECODERS]
        found.append(f"decoder.kind: unknown decoder '{kind}'{nearest(kind, known)}; {_allowed(known)}")
    elif kind not in (fitting := _writers(recipe)):
        found.append(f"decoder.kind: {kind} cannot write an output of kind {recipe.output.kind}; {_allowed(fitting)}")
    if recipe.decoder.tied and recipe.decoder.embedding.kind == "one-hot":
        found.append("decoder.tied: a one-hot embedding has no weights to tie; allowed: false")
    if recipe.decoder.join == "compare":
        for path, given in (("start", recipe.started_by), ("every_step", recipe.fed_every_step)):
            if given and len(given) != 2:
                found.append(f"decoder.join: compare needs two inputs in decoder.{path}, got {len(given)}")
    return found


def _writers(recipe: Recipe) -> list[str]:
    """Decoders that write such an output: ours, and those that plug-ins brought."""
    brought = [own.name for own in DECODERS.values() if own.one_step == recipe.output.one_step]
    return [*BY_OUTPUT[recipe.output.kind], *brought]


def _allowed(kinds: list[str]) -> str:
    return f"allowed: {', '.join(kinds)}, {BROUGHT}"


def _own(recipe: Recipe) -> list[str]:
    """Settings of classes that plug-ins brought, which their constructors could not take."""
    groups: dict[str, tuple[Own, dict[str, Scalar]]] = {}
    if recipe.inputs and isinstance(recipe.encoder, OwnEncoderSettings):
        groups["encoder"] = recipe.encoder.own, recipe.encoder.arguments
    for name, given in recipe.inputs.items():
        if isinstance(given.encoder, OwnEncoderSettings):
            groups[f"inputs.{name}.encoder"] = given.encoder.own, given.encoder.arguments
    if recipe.decoder.own is not None:
        groups["decoder"] = recipe.decoder.own, recipe.decoder.options
    return [f"{path}.{key}: {reason}" for path, (own, given) in groups.items() for key, reason in own.wrong(given)]


def _data(recipe: Recipe) -> list[str]:
    found = []
    if recipe.data.stream and (recipe.inputs or recipe.output.kind != "text"):
        found.append(
            "data.stream: only a language model (no inputs, output of kind text) reads a stream; allowed: false"
        )
    if not recipe.inputs and recipe.output.one_step:
        found.append(f"inputs: {recipe.output.said} needs at least one input")
    for name in recipe.inputs:
        lost = recipe.attention.score != "none" and not recipe.with_places  # said of the attention
        if name not in recipe.used and not unconditioned(recipe) and not lost:
            found.append(
                f"inputs.{name}: is read and never used; name it in attention.over, decoder.start or decoder.every_step"
            )
    embeddings = {"encoder": embedding_of(recipe.encoder), "decoder": recipe.decoder.embedding}
    for name, given in recipe.inputs.items():
        if given.encoder is not None:
            embeddings[f"inputs.{name}.encoder"] = embedding_of(given.encoder)
    for path, embedding in embeddings.items():
        if embedding is not None and embedding.kind == "pretrained" and not embedding.path:
            found.append(f"{path}.embedding.path: a pretrained embedding needs a file of vectors")
    return found


def _looks(recipe: Recipe) -> list[str]:
    """Queries and places of sizes that do not meet."""
    found = []
    sizes = {name: recipe.view_of(name)[0] for name in recipe.looked_at}
    places = {name: size for name, size in sizes.items() if size is not None}
    if recipe.attention.heads > 1:
        for name, size in places.items():
            if size % recipe.attention.heads:
                found.append(
                    f"attention.heads: {recipe.attention.heads} heads cannot share the {size} numbers of the "
                    f"places of '{name}'; allowed: what divides {size}"
                )
    elif recipe.attention.score in ("dot", "scaled-dot", "cosine") and recipe.state_size is not None:
        places |= _held_in(recipe)
        asking = "decoder.size" if recipe.state_size == recipe.decoder.size else "the code's size"
        for name, size in places.items():
            if size != recipe.state_size:
                instead = f", or set decoder.size={size}" if asking == "decoder.size" else ""
                found.append(
                    f"attention.score: {recipe.attention.score} needs {asking} equal to the size of the places of "
                    f"'{name}', got {recipe.state_size} and {size}; use general or additive{instead}"
                )
    return found


def _held_in(recipe: Recipe) -> dict[str, int]:
    """Larger places that are asked too, where others are looked at through them, and the numbers in each."""
    if recipe.attention.through is None:
        return {}
    sizes = {name.partition(".")[0]: recipe.encoder_of(name.partition(".")[0]).places_size for name in recipe.looked_at}
    return {name: size for name, size in sizes.items() if size is not None}


def _sizes(recipe: Recipe) -> list[str]:
    found = _looks(recipe)
    sizes = {name: recipe.encoder_of(name).summary_size for name in recipe.inputs}
    summaries = {name: size for name, size in sizes.items() if size is not None}
    if len(summaries) < len(sizes) or recipe.decoder.own is not None:
        return found
    if recipe.decoder.start_by == "copy" and recipe.started_by and recipe.decoder.kind != "reconstruction":
        joined = sum(summaries[name] for name in recipe.started_by) * (2 if recipe.decoder.join == "compare" else 1)
        if joined != recipe.decoder.size:
            found.append(
                f"decoder.start_by: copy needs decoder.size equal to the summary's size, got {recipe.decoder.size} and "
                f"{joined}; use dense, or set decoder.size={joined}"
            )
    if recipe.decoder.join == "compare":
        for given in (recipe.started_by, recipe.fed_every_step):
            if len(given) == 2 and summaries[given[0]] != summaries[given[1]]:
                found.append(
                    f"decoder.join: compare needs summaries of one size, got {summaries[given[0]]} ({given[0]}) and "
                    f"{summaries[given[1]]} ({given[1]})"
                )
    return found


def _layers(recipe: Recipe) -> list[str]:
    """More layers than can be built in a reasonable time: each of them is, one by one, before anything is counted."""
    groups = {path: recipe.encoder_of(names[0]) for path, names in read_by(recipe).items()}
    counts = {path: len(read_by(recipe)[path]) * _layers_of(settings) for path, settings in groups.items()}
    looks = len(recipe.looked_at) * (recipe.attention.layers if recipe.attention.score == "deep" else 1)
    counts["decoder"] = recipe.decoder.layers * (looks + 1 if recipe.decoder.kind == "transformer" else 1) + looks
    total = sum(counts.values())
    if total <= MOST_LAYERS:
        return []
    largest = max(counts, key=lambda path: counts[path])
    here = f"{counts[largest]:,} of them here"
    return [f"{largest}: {total:,} layers in all networks together, {here}; at most {MOST_LAYERS:,} in all"]


def _layers_of(settings: EncoderSettings) -> int:
    given = dict(settings)
    lists = [value for key in ("hidden", "channels", "motion") if isinstance(value := given.get(key), list)]
    levels = 2 if isinstance(settings, HierarchicalEncoderSettings) else 1
    single = sum(value for key in ("layers", "summary_layers") if isinstance(value := given.get(key), int))
    return max(levels * single + sum(map(len, lists)), 1)


def _search(recipe: Recipe) -> list[str]:
    least, most = recipe.search.min_length, recipe.search.max_length
    if least > most:
        return [f"search.min_length: {least} is more than search.max_length {most}"]
    return []
