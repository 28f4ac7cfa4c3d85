"""What one case does, by the public interface alone: losses, outputs, where it looks, what it is measured at."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

import seq2see
from tests.record.cases import UPDATES, Case, overrides
from tests.record.tables import Table, make

LONGEST = 24
"""Numbers of a row that are written out; of longer ones the first so many, and one number made of all."""
DIGITS = 6
"""Significant digits that are kept: more than are compared."""
RELATIVE, ABSOLUTE = 2e-3, 1e-4
"""How far numbers may lie apart on another processor."""
SMOOTH = ("perplexity", "mae", "mse")
"""Measures that a rounding cannot throw: those of reports that are compared on any machine."""


def record(case: Case, folder: Path) -> dict[str, Any]:
    """All that is seen of a case, trained and asked in the folder, in full."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = make(case.table or case.recipe, folder / "table")
        models = train(case, table, folder)
        reports = [told(folder / name) for name in models]
        return {"parameters": [counted(folder / name) for name in models], "reports": reports} | ask(
            case, table, [folder / name for name in models]
        )


def train(case: Case, table: Table, folder: Path) -> list[str]:
    """Train as the case says; the names of the folders of its models."""
    settings: dict[str, Any] = {"data": table.data, "overrides": overrides(case), "listeners": [], "seed": 7}
    if case.way == "whole":
        seq2see.train(case.recipe, out=folder / "model", updates=UPDATES, **settings)
        return ["model"]
    if case.way == "resumed":
        seq2see.train(case.recipe, out=folder / "model", updates=UPDATES // 2, **settings)
        seq2see.train(None, out=folder / "model", updates=UPDATES, resume=True, listeners=[])
        return ["model"]
    names = ["first", "second"]
    for number, name in enumerate(names):
        start = folder / names[0] if number and case.way == "fine-tuned" else None
        settings |= {"seed": 7 + number}
        seq2see.train(case.recipe, out=folder / name, updates=UPDATES // 2, start=start, **settings)
    return names if case.way == "ensemble" else names[1:]


def told(folder: Path) -> list[dict[str, Any]]:
    """The reports of a run, without times, and without the folder in the paths of files."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").replace(f"{folder.parent}/", "").splitlines()
    kept = ("update", "epoch", "loss", "learning_rate", "gradient_norm", "dev", "baseline", "best", "averaged")
    return [{key: report[key] for key in (*kept, "samples") if key in report} for report in map(json.loads, lines)]


def counted(folder: Path) -> int:
    """Numbers in a model's file."""
    with safe_open(folder / "model.safetensors", "np") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def ask(case: Case, table: Table, folders: Sequence[Path]) -> dict[str, Any]:
    """What the models in these folders, one or an ensemble, say of the rows that were held out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = seq2see.load("+".join(map(str, folders)))
        return {
            "predictions": [_answers(case, model, given, table) for given in table.inputs],
            "scores": _scores(model, table),
            "vectors": _vectors(model, table) if len(folders) == 1 else [],
            "measured": _measured(case, model, table),
        }


def _answers(case: Case, model: seq2see.Model, given: Any, table: Table) -> dict[str, Any]:
    """By greedy search with all maps, by a beam of three, for a given output, and as the case asks beside."""
    plain = model.predict(given, maps=True)
    found = {"plain": _prediction(plain)}
    if plain.text is not None:
        found["greedy"] = _prediction(model.predict(given, maps=True, beam=1))
        found["beam"] = _prediction(model.predict(given, beam=3, n_best=3))
    if plain.text is not None or plain.label is not None:
        found["given"] = _prediction(model.look(given, target=table.output))
    return found | {name: _prediction(model.predict(given, **options)) for name, options in case.asked.items()}


def _prediction(said: seq2see.Prediction) -> dict[str, Any]:
    kinds = {"text": said.text, "label": said.label, "vector": said.vector}
    found: dict[str, Any] = {kind: value for kind, value in kinds.items() if value is not None}
    if said.image is not None:
        found["image"] = _array(np.asarray(said.image))
    if not said.numeric:
        found |= {"score": said.score, "log_probability": said.log_probability}
    tokens = {
        "symbols": [one.text for one in said.tokens],
        "probabilities": [one.probability for one in said.tokens],
        "runners_up": [[list(pair) for pair in one.runners_up] for one in said.tokens],
    }
    others = {
        "texts": [one.text for one in said.alternatives],
        "scores": [one.score for one in said.alternatives],
        "log_probabilities": [one.log_probability for one in said.alternatives],
    }
    return found | {"tokens": tokens, "alternatives": others, "looks": _looks(said.looks)}


def _looks(looks: seq2see.Looks) -> dict[str, Any]:
    return {
        name: {
            "weights": _array(weights),
            "inputs": looks.inputs.get(name, []),
            "rows": looks.rows.get(name, []),
            "layout": looks.layouts.get(name, {}),
            "chosen": looks.chosen.get(name, []),
        }
        for name, weights in looks.maps.items()
    }


def _array(numbers: np.ndarray) -> dict[str, Any]:
    return {"shape": list(numbers.shape), "values": numbers.reshape(-1).tolist()}


def _scores(model: seq2see.Model, table: Table) -> dict[str, Any]:
    """The probability of held-out outputs, of each symbol too; of what is made of numbers there is none."""
    if model.predict(table.inputs[0]).numeric:
        return {}
    scored = model.score(table.held)
    each = [{"symbols": one.symbols, "log_probs": one.log_probs} for one in scored.each[:2]]
    return {"tokens": scored.tokens, "log_probability": scored.log_probability, "each": each}


def _vectors(model: seq2see.Model, table: Table) -> list[list[float]]:
    """What inputs are summed up as; a language model has none."""
    return [] if table.inputs[0] is None else model.encode(table.inputs)


def _measured(case: Case, model: seq2see.Model, table: Table) -> dict[str, Any]:
    report = model.evaluate(table.held, **case.measured).to_dict()
    return {name: value for name, value in report.items() if name not in ("seen", "baseline_says")}


# ---------------------------------------------------------------- what is kept, and how it is compared


def shortened(full: Mapping[str, Any]) -> dict[str, Any]:
    """A record as it is kept: long rows cut, numbers rounded, and of reports what does not jump."""
    names = ("update", "loss", "learning_rate", "gradient_norm", "best", "averaged")
    smooth = () if _hard(full) else SMOOTH
    reports = [
        {name: [report[name] for report in run] for name in names}
        | {name: [report["dev"][name] for report in run] for name in smooth if name in run[0]["dev"]}
        for run in full["reports"]
    ]
    first, *others = full["predictions"]
    predictions = [{name: _sparing(name, one) for name, one in first.items()}]
    predictions += [{name: _sparing("", one) for name, one in every.items() if name != "given"} for every in others]
    return _short({**full, "reports": reports, "predictions": predictions})  # type: ignore[no-any-return]


def _hard(full: Mapping[str, Any]) -> bool:
    """Whether one place is chosen at each step: of two that are almost as likely a rounding may choose the other."""
    looks = [one["looks"] for every in full["predictions"] for one in every.values()]
    return any(one["chosen"] for maps in looks for one in maps.values())


def _sparing(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Runners-up are kept of greedy search alone, and of looks that come of another search their outline: the rest is
    the same in other words."""
    tokens = {"probabilities": said["tokens"]["probabilities"]}
    if name == "greedy":
        tokens |= {"runners_up": [pairs[:3] for pairs in said["tokens"]["runners_up"]]}
    if name == "greedy" or (name and "text" not in said):
        looks = said["looks"]
    elif name == "given" or "text" not in said:
        looks = {key: one["weights"] for key, one in said["looks"].items()}
    else:
        looks = {key: _outline(one["weights"]) for key, one in said["looks"].items()}
    return {**said, "tokens": tokens, "looks": looks}


def _outline(weights: Mapping[str, Any]) -> dict[str, Any]:
    places = np.linspace(0, 1, len(weights["values"]))
    return {"shape": weights["shape"], "moment": float(np.dot(weights["values"], places))}


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _short(inner) for key, inner in value.items() if inner not in ([], {})}
    if not isinstance(value, list):
        return value
    if len(value) > LONGEST and all(isinstance(one, int | float) for one in value):
        places = np.linspace(0, 1, len(value))
        whole = {"sum": float(np.sum(value)), "moment": float(np.dot(value, places))}
        return {"length": len(value), "first": _short(value[:LONGEST])} | _short(whole)
    return [_short(inner) for inner in value]


def differences(expected: Any, found: Any, *, exact: bool = False, path: str = "") -> Iterator[str]:
    """Paths at which two records differ; exact: in any bit."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in expected.keys() | found.keys():
            here = f"{path}.{key}" if path else key
            if key not in expected or key not in found:
                yield here
            else:
                yield from differences(expected[key], found[key], exact=exact, path=here)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path}.length"
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from differences(one, other, exact=exact, path=f"{path}.{number}")
    elif not _alike(expected, found, exact=exact):
        yield path


def _alike(one: Any, other: Any, *, exact: bool) -> bool:
    if exact or not (isinstance(one, float) or isinstance(other, float)):
        return bool(one == other) or _neither(one, other)
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return False
    return one == other or math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or _neither(one, other)


def _neither(one: Any, other: Any) -> bool:
    """Whether neither is a number."""
    return all(isinstance(value, float) and math.isnan(value) for value in (one, other))


def unexpected(kept: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Where a case does other things than the record says, as far as the record holds on any machine."""
    unsteady: Collection[str] = set(kept["unsteady"])
    return sorted(path for path in differences(kept["record"], found) if path not in unsteady)
