"""Combinations that cannot work, each with the path of its key: found before anything is built."""

from __future__ import annotations

from seq2see.errors import nearest
from seq2see.recipe.documents import through, unknown_places, unread, unused_sentences
from seq2see.recipe.inert import inert
from seq2see.recipe.measures import unfit
from seq2see.recipe.resolve import unconditioned
from seq2see.recipe.schema import Recipe, TextOutput, names
from seq2see.recipe.scores import SCORES

RESERVED = ("none", "output", "training")
"""Words with a meaning of their own wherever the name of an input could stand; torch claims the last one."""


def problems(recipe: Recipe) -> list[str]:
    """Every problem of a recipe whose keys and types are right, as 'path: what is wrong'."""
    found = [*_names(recipe), *_shares(recipe)] or [*unknown_places(recipe), *unread(recipe)]
    if found:
        return found
    found += [
        *_attention(recipe),
        *_decoder(recipe),
        *_data(recipe),
        *_sizes(recipe),
        *_search(recipe),
    ]
    found += [f"{path}: {reason}" for path, reason in (unfit(recipe) | unconditioned(recipe)).items()]
    found += [f"{path}: has no effect here: {reason}" for path, reason in inert(recipe).items()]
    return found


def _names(recipe: Recipe) -> list[str]:
    found = []
    known = list(recipe.inputs)
    for name in known:
        if not name.isidentifier() or name in RESERVED or name.startswith("_"):
            found.append(
                f"inputs.{name}: not a name for an input; allowed: letters, digits and _, a letter first, "
                f"but not {', '.join(RESERVED)}"
            )
    uses = {"decoder.start": recipe.decoder.start, "decoder.every_step": recipe.decoder.every_step}
    for path, given in uses.items():
        for name in names(given):
            if name not in known:
                allowed = ", ".join([*known, "none"])
                found.append(f"{path}: there is no input '{name}'{nearest(name, known)}; allowed: {allowed}")
    return found


def _shares(recipe: Recipe) -> list[str]:
    found = []
    fields = dict(recipe.inputs) | ({"output": recipe.output} if isinstance(recipe.output, TextOutput) else {})
    for name, given in fields.items():
        shared = given.share
        if shared is None:
            continue
        path = f"{'inputs.' if name != 'output' else ''}{name}.share"
        if shared not in recipe.inputs or shared == name or recipe.inputs[shared].share:
            allowed = ", ".join(other for other in recipe.inputs if other != name and not recipe.inputs[other].share)
            found.append(
                f"{path}: '{shared}' is no other input with a vocabulary of its own; allowed: {allowed or 'none'}"
            )
        elif given.tokens != recipe.inputs[shared].tokens:
            theirs = recipe.inputs[shared].tokens
            found.append(f"{path}: tokens are {given.tokens} here and {theirs} in {shared}: must be the same")
        elif name != "output" and given.kind != recipe.inputs[shared].kind:
            kind = recipe.inputs[shared].kind
            found.append(f"{path}: kind is {given.kind} here and {kind} in {shared}: one encoder reads one kind")
    return found


def _attention(recipe: Recipe) -> list[str]:
    score = recipe.attention.score
    if score == "none":
        return []
    if score not in SCORES:
        allowed = [*SCORES, "none"]
        return [f"attention.score: unknown score '{score}'{nearest(score, allowed)}; allowed: {', '.join(allowed)}"]
    if not recipe.inputs:
        return [f"attention.score: {score} has nothing to look at in a model without inputs; allowed: none"]
    if not recipe.looked_at:
        return ["attention.over: names no input; to switch attention off, set attention.score to none"]
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
    return recipe.decoder.output == "all" or (recipe.decoder.kind == "recurrent" and recurrence)


def _decoder(recipe: Recipe) -> list[str]:
    found = []
    if (recipe.decoder.kind == "label") != (recipe.output.kind == "label"):
        found.append(
            f"decoder.kind: {recipe.decoder.kind} cannot write an output of kind {recipe.output.kind}; "
            f"allowed: {'label' if recipe.output.kind == 'label' else 'recurrent'}"
        )
    if recipe.decoder.tied and recipe.decoder.embedding.kind == "one-hot":
        found.append("decoder.tied: a one-hot embedding has no weights to tie; allowed: false")
    if recipe.decoder.join == "compare":
        for path, given in (("start", recipe.started_by), ("every_step", recipe.fed_every_step)):
            if given and len(given) != 2:
                found.append(f"decoder.join: compare needs two inputs in decoder.{path}, got {len(given)}")
    return found


def _data(recipe: Recipe) -> list[str]:
    found = []
    if recipe.data.stream and (recipe.inputs or recipe.output.kind != "text"):
        found.append(
            "data.stream: only a language model (no inputs, output of kind text) reads a stream; allowed: false"
        )
    if not recipe.inputs and recipe.output.kind == "label":
        found.append("inputs: a label needs at least one input")
    for name in recipe.inputs:
        if name not in recipe.used and not unconditioned(recipe):
            found.append(
                f"inputs.{name}: is read and never used; name it in attention.over, decoder.start or decoder.every_step"
            )
    embeddings = {"encoder": recipe.encoder.embedding, "decoder": recipe.decoder.embedding}
    for name, given in recipe.inputs.items():
        if given.encoder is not None:
            embeddings[f"inputs.{name}.encoder"] = given.encoder.embedding
    for path, embedding in embeddings.items():
        if embedding.kind == "pretrained" and not embedding.path:
            found.append(f"{path}.embedding.path: a pretrained embedding needs a file of vectors")
    return found


def _looks(recipe: Recipe) -> list[str]:
    """Queries and places of sizes that do not meet."""
    found = []
    places = {name: recipe.view_of(name)[0] for name in recipe.looked_at}
    if recipe.attention.heads > 1:
        for name in recipe.looked_at:
            if places[name] % recipe.attention.heads:
                found.append(
                    f"attention.heads: {recipe.attention.heads} heads cannot share the {places[name]} numbers of the "
                    f"places of '{name}'; allowed: what divides {places[name]}"
                )
    elif recipe.attention.score in ("dot", "scaled-dot", "cosine"):
        for name in recipe.looked_at:
            if places[name] != recipe.decoder.size:
                found.append(
                    f"attention.score: {recipe.attention.score} needs decoder.size equal to the size of the places of "
                    f"'{name}', got {recipe.decoder.size} and {places[name]}; use general or additive, or set "
                    f"decoder.size={places[name]}"
                )
    return found


def _sizes(recipe: Recipe) -> list[str]:
    found = _looks(recipe)
    summaries = {name: recipe.encoder_of(name).summary_size for name in recipe.inputs}
    if recipe.decoder.start_by == "copy" and recipe.started_by:
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


def _search(recipe: Recipe) -> list[str]:
    least, most = recipe.search.min_length, recipe.search.max_length
    if least > most:
        return [f"search.min_length: {least} is more than search.max_length {most}"]
    return []
