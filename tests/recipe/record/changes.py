"""What may differ from the record, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Change:
    """Cases in which something else is meant to happen now. All three are patterns with `*` and `?`.

    cases: of a case as `Case` writes it, `translation | attention.score=dot | decoder.size=8`; was, now: of what
    happens to it, `accepted` or `refused: decoder.size, encoder.size` (the paths that the message names, sorted).
    A `[` in a pattern is written `[[]`.
    """

    cases: str
    was: str
    now: str
    reason: str

    def covers(self, case: str, was: str, now: str) -> bool:
        return fnmatchcase(case, self.cases) and fnmatchcase(was, self.was) and fnmatchcase(now, self.now)


KEYS_OF_OTHERS = "keys that a kind of decoder has not are refused before their values are looked at"

EXCEPTIONS: list[Change] = [
    Change("* | inputs.*.encoder=[[]*", "refused: ", "refused: inputs.*.encoder", "the message was '0 problems'"),
    Change("*decoder.reconstruction.*", "refused: *", "refused: *decoder.reconstruction*", KEYS_OF_OTHERS),
    Change("*decoder.embedding.*", "refused: *", "refused: *decoder.embedding*", KEYS_OF_OTHERS),
    Change("*decoder.layers=*", "refused: *decoder, decoder.layers*", "refused: *decoder.layers*", KEYS_OF_OTHERS),
    Change("*", "refused: attention.over", "refused: attention.over, *", "what has no inputs has no attention.over"),
    Change("*", "refused: attention.options", "refused: attention.options.*", "each option is named"),
    Change("* | decoder.reconstruction={*", "refused: *", "refused: decoder.reconstruction", KEYS_OF_OTHERS),
    Change("* | encoder.embedding.*", "refused: *encoder.embedding*", "refused: *encoder.embedding*", KEYS_OF_OTHERS),
    Change("* | .=1", "refused: *", "refused: *", "the message named an empty path"),
    Change("*decoder.every_step=*", "refused: *decoder.every_step*", "refused: *decoder.every_step*", KEYS_OF_OTHERS),
    Change("video* | *encoder.*", "refused: inputs.video.encoder.*", "refused: encoder.*", "named where it is"),
    Change("*", "refused: *dict[[]str,*", "refused: loss.class_weights*", "the path was one of pydantic's own"),
]
"""A case that one of these covers is not compared. Those above are for messages that were at fault already."""

OTHER_KINDS: dict[str, dict[str, object]] = {
    "attention": {
        "size": 128,
        "layers": 2,
        "learned_temperature": False,
        "filters": 16,
        "kernel": 5,
        "positions": 200,
        "window": 5,
        "gaussian": True,
        "estimator": "score-function",
        "gumbel_temperature": 1.0,
        "options": {},
        "over": None,
        "scope": "global",
        "normaliser": "softmax",
        "temperature": 1.0,
        "choice": "soft",
        "through": None,
        "heads": 1,
        "query": "previous",
        "input_feeding": True,
    },
    "decoder": {
        "cell": "gru",
        "activation": "tanh",
        "reset": "after",
        "layers": 1,
        "output": "all",
        "readout": 0,
        "heads": 4,
        "feedforward": 1024,
        "positions": "sinusoidal",
        "longest": 512,
        "memory": None,
        "options": {},
        "every_step": None,
        "tied": False,
        "copy_from": None,
        **{f"embedding.{key}": value for key, value in {"kind": "learned", "size": 128, "dropout": 0.0}.items()},
        "embedding.path": None,
        "embedding.tuned": True,
        **{f"reconstruction.{key}": "mirrored" for key in ("hidden", "activation", "channels")},
        "reconstruction.pixels": "dense",
        "reconstruction.output": None,
    },
    "encoder": {
        "cell": "gru",
        "activation": "tanh",
        "reset": "after",
        "layers": 1,
        "bidirectional": True,
        "heads": 4,
        "feedforward": 1024,
        "positions": "sinusoidal",
        "longest": 512,
        "embedding.size": 128,
        "embedding.path": None,
        "embedding.tuned": True,
        "options": {},
        **{f"recurrent.{key}": value for key, value in {"activation": "tanh", "reset": "after"}.items()},
    },
}
"""Keys that only some kinds of these groups have: recipes of other kinds had them too, at these values, and no more."""


def may_be_of_another_kind(path: str) -> bool:
    """Whether that key is told of at once, whatever else is wrong: it is no matter of combinations any more."""
    parts = path.split(".")
    group, *inside = parts[2:] if parts[0] == "inputs" and len(parts) > 2 else parts
    known = OTHER_KINDS.get(group, {})
    return any(one == ".".join(inside) or one.startswith(f"{'.'.join(inside)}.") for one in known)


def of_another_kind(path: str, value: object) -> bool:
    """Whether a recipe had that key without a use for it.

    >>> of_another_kind("inputs.x.encoder.heads", 4), of_another_kind("attention.size", 64)
    (True, False)
    """
    parts = path.split(".")
    group, *inside = parts[2:] if parts[0] == "inputs" and len(parts) > 2 else parts
    known = OTHER_KINDS.get(group, {})
    return ".".join(inside) in known and (known[".".join(inside)] == value or value == "none")


GONE: set[str] = set()
"""Paths, or beginnings of paths up to a dot, that accepted recipes no longer have where they had them:
`attention.gumbel_temperature`, or `decoder.reconstruction` for all below it. NAME stands for the name of an input."""

ADDED: set[str] = {
    "fitted",
    "data.shuffle_rows",
    "data.decimal",
    "evaluation.further_baselines",
    "inputs.NAME.normalise",
    "loss.alignment.optional",
    "loss.alignment.rate",
    "loss.ctc_alignment",
    "loss.ctc_first",
    "loss.distillation",
    "loss.reward",
    *(f"{part}.convolutions" for part in ("encoder", "inputs.NAME.encoder")),
    "training.deterministic",
    "training.ema",
    "training.noise",
    "training.wait_minutes",
    *(
        f"{part}.{key}"
        for part in ("encoder", "decoder", "inputs.NAME.encoder", "encoder.recurrent", "inputs.NAME.encoder.recurrent")
        for key in ("variational", "recurrent_dropout", "weight_drop", "embedding.symbol_dropout")
    ),
    *(
        f"inputs.NAME.augment.{key}"
        for key in ("elastic", "elastic_width", "thickness", "speed", "occlude", "time_masks", "time_width")
    ),
    "search.language_model",
    "search.language_model_internal",
    "search.language_model_use",
    "search.language_model_weight",
}
"""Paths, written in the same way, that accepted recipes have where they had none."""


def listed(path: str, table: set[str]) -> bool:
    """Whether a path, or a group it lies in, is in such a table.

    >>> listed("inputs.source.encoder.size", {"inputs.NAME.encoder"}), listed("decoder.sizes", {"decoder.size"})
    (True, False)
    """
    parts = path.split(".")
    if parts[0] == "inputs" and len(parts) > 1:
        parts[1] = "NAME"
    return any(".".join(parts[:end]) in table for end in range(1, len(parts) + 1))
