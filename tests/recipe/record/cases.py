"""Recipes and overrides to record, always the same ones: shipped recipes with every key set to values right and wrong,
pairs of the keys that matter most, whatever the tests have tried, and mappings that are none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.recipe.record.storage import NOTHING, Case, Source, number_of, parsed

Key = tuple[str, str, str]
"""Path, what is allowed and default, as the page of all keys had them."""

COLLECTED = Path(__file__).with_name("collected.json")
"""calls: (recipe, overrides) of every call of load_recipe while the tests of recipes, options, sets and models ran;
overrides, together: the single ones, and those that stand in one list, of all tests. None names a part of a plug-in:
what other tests register would be known here, or not, as the order of the tests has it."""

SMALL = {
    NOTHING: "{}",
    "one text": "inputs: {source: {}}",
    "two texts": "inputs: {a: {}, b: {}}",
    "a text to a label": "inputs: {source: {}}\noutput: {kind: label}",
    "two texts to a label": "inputs: {a: {}, b: {share: a}}\noutput: {kind: label}\n"
    "decoder: {join: compare}\nattention: none",
    "a document": "inputs: {doc: {kind: texts}}\nencoder: {kind: hierarchical}",
    "a document by its words": "inputs: {doc: {kind: texts}}\nencoder: {kind: hierarchical}\n"
    "attention: {over: doc.words, through: sentences}",
    "transformers": "inputs: {source: {}}\nencoder: {kind: transformer, size: 64}\n"
    "decoder: {kind: transformer, size: 64}",
    "a transformer that tells labels": "inputs: {source: {}}\noutput: {kind: label}\ndecoder: {kind: transformer}",
    "a stream": "data: {stream: true}\ndecoder: {kind: transformer}",
    "a set": "inputs: {items: {kind: set}}\nencoder: {kind: deep-sets}",
    "a sound": "inputs: {audio: {kind: sound}}",
    "an image": "inputs: {image: {kind: image}}",
    "a line": "inputs: {image: {kind: image, height: 32, width: 0}}\n"
    "encoder: {kind: convolutional, places: columns, recurrent: {size: 64}}",
    "a video": "inputs: {video: {kind: video}}",
    "a vector": "inputs: {x: {kind: vector}}\noutput: {kind: vector, column: x}",
    "an image and a text": "inputs: {image: {kind: image}, question: {}}\noutput: {kind: label}\n"
    "attention: {over: image}\ndecoder: {start: question}",
    "encoders of their own": "inputs:\n  a: {encoder: {kind: transformer, size: 64}}\n"
    "  b: {encoder: {self_attention: dot, size: 32}}",
    "copying": "inputs: {source: {}}\ndecoder: {copy_from: source}",
    "hard looks": "inputs: {source: {}}\nattention: {choice: hard, estimator: gumbel, scope: local-predicted}",
}
"""Recipes that say next to nothing, so that defaults show."""

FURTHER: list[Key] = [
    (f"encoder.recurrent.{key}", allowed, "")
    for key, allowed in {
        "cell": "rnn, gru or lstm",
        "size": "whole number above 0, to 1,000,000",
        "layers": "whole number above 0, to 1,000",
        "bidirectional": "true or false",
        "activation": "tanh or logistic",
        "reset": "after or before",
        "dropout": "number from 0, below 1",
    }.items()
]
"""Keys of a group that the page only names."""

ENCODERS = ["recurrent", "transformer", "hierarchical", "convolutional", "deep-sets", "dense", "pyramidal", "video"]
SCORES = [
    "dot",
    "scaled-dot",
    "cosine",
    "general",
    "additive",
    "concat",
    "deep",
    "location",
    "coverage",
    "static",
    "uniform",
    "none",
]
NAMING = ("attention.over", "decoder.start", "decoder.every_step", "decoder.copy_from")
ALSO = {
    "output.kind": ["text", "label", "vector", "image", "lable"],
    "inputs.NAME.kind": ["text", "texts", "set", "image", "sound", "video", "vector", "pictures"],
    "encoder.kind": [*ENCODERS, "recurent"],
    "encoder.self_attention": [*SCORES, "addtive"],
    "encoder.backbone": [
        "small",
        "resnet18",
        "vgg16",
        "efficientnet-lite0",
        "timm:convnext_tiny",
        "timm:",
        "resnet-50",
    ],
    "encoder.patch": ["8", "[8, 4]", "[8]", "0", "10001"],
    "encoder.levels": ["[recurrent, transformer]", "[transformer]", "[transformer, recurrent]"],
    "encoder.pooled": ["[both]", "[height, both]", "[both, both, both]", "both", "[width]"],
    "encoder.spans": ["[3]", "[3, 5]", "[2]", "[17]", "[]"],
    "attention.score": ["addtive", "None"],
    "evaluation.metrics": [
        *("[bleu]", "[accuracy]", "[mse]", "[perplexity]", "[aer]"),
        *("[exact@5, cer]", "[own]", "bleu", "[bleu_plain]", "[wer, wer]"),
    ],
    "training.metric": ["bleu", "accuracy", "perplexity", "mse", "cer", "aer"],
    "training.betas": ["[0.9]", "[0.9, 0.98]", "[0.9, 1.0]", "[-1, 0]"],
    "training.device": ["cuda", "tpu"],
    "data.delimiter": ["comma", ",", "|", "colon", "tab"],
    "data.encoding": ["latin-1", "no-such"],
    "loss.class_weights": ["balanced", "none", "{yes: 2, no: 1}", "{yes: 0}", "often"],
    "inputs.NAME.region": ["[0, 0, 1, 1]", "[0.5, 0, 0.2, 1]", "[0, 0, 2, 1]", "[0, 0]"],
    "inputs.NAME.sentences": ["newline", "tab", "'|||'", "''"],
    "inputs.NAME.separator": [";", "newline", "''"],
    "decoder.memory": ["9", "256"],
}
"""Values beside those that can be told from what is allowed."""

PAIRED = {
    "attention": ["none", "dot"],
    "attention.score": ["dot", "cosine", "general", "deep", "location", "coverage", "static", "uniform", "none"],
    "attention.scope": ["local-monotonic", "local-predicted"],
    "attention.window": ["2"],
    "attention.gaussian": ["false"],
    "attention.choice": ["hard"],
    "attention.estimator": ["gumbel"],
    "attention.gumbel_temperature": ["0.5"],
    "attention.normaliser": ["sparsemax", "entmax15"],
    "attention.temperature": ["2"],
    "attention.heads": ["2", "3"],
    "attention.over": ["FIRST", "LAST", "FIRST.words", "LAST.regions", "[]", "none"],
    "attention.through": ["sentences"],
    "attention.query": ["current"],
    "attention.input_feeding": ["false"],
    "attention.size": ["64"],
    "attention.layers": ["3"],
    "attention.kernel": ["3"],
    "attention.positions": ["30"],
    "decoder.kind": ["recurrent", "transformer", "label", "reconstruction"],
    "decoder.cell": ["rnn", "lstm"],
    "decoder.reset": ["before"],
    "decoder.size": ["64", "100"],
    "decoder.layers": ["2"],
    "decoder.dropout": ["0.5", "0"],
    "decoder.heads": ["2", "7"],
    "decoder.feedforward": ["32"],
    "decoder.start": ["FIRST", "LAST", "none", "ALL"],
    "decoder.start_by": ["copy"],
    "decoder.every_step": ["FIRST", "LAST", "ALL"],
    "decoder.join": ["compare"],
    "decoder.output": ["state"],
    "decoder.copy_from": ["FIRST", "LAST"],
    "decoder.readout": ["16"],
    "decoder.memory": ["9"],
    "decoder.positions": ["learned", "rotary", "none"],
    "decoder.longest": ["5"],
    "decoder.tied": ["true", "false"],
    "decoder.embedding.kind": ["one-hot", "pretrained"],
    "decoder.reconstruction.pixels": ["transposed"],
    "decoder.reconstruction.hidden": ["[8]"],
    "encoder.kind": ENCODERS,
    "encoder.cell": ["rnn", "lstm"],
    "encoder.size": ["64", "7"],
    "encoder.layers": ["1", "2"],
    "encoder.levels": ["transformer", "[transformer, recurrent]"],
    "encoder.over_time": ["transformer", "none"],
    "encoder.regions": ["true"],
    "encoder.bidirectional": ["false"],
    "encoder.self_attention": ["dot", "coverage"],
    "encoder.positions": ["none", "learned"],
    "encoder.heads": ["2"],
    "encoder.pooling": ["mean", "attention"],
    "encoder.places": ["vector", "columns", "flat"],
    "encoder.hidden": ["[]"],
    "encoder.embedding.kind": ["one-hot"],
    "inputs.FIRST.encoder": ["{}", "null"],
    "inputs.FIRST.encoder.kind": ["transformer", "dense", "recurrent"],
    "inputs.LAST.encoder.size": ["48"],
    "inputs.FIRST.kind": ["text", "texts", "set", "image", "sound", "video", "vector"],
    "inputs.LAST.kind": ["text", "vector"],
    "inputs.FIRST.tokens": ["character", "bpe"],
    "inputs.FIRST.max_length": ["20"],
    "inputs.LAST.share": ["FIRST"],
    "inputs.more": ["{}", "{kind: image}", "{kind: vector}"],
    "output.kind": ["text", "label", "vector", "image"],
    "output.tokens": ["character", "symbol"],
    "output.share": ["FIRST"],
    "output.made": ["direction"],
    "output.max_length": ["30"],
    "data.stream": ["true", "false"],
    "loss.label_smoothing": ["0.1"],
    "loss.class_weights": ["balanced"],
    "loss.doubly_stochastic": ["0.5"],
    "loss.entropy": ["0.1"],
    "loss.coverage": ["0.5"],
    "loss.consistency": ["1"],
    "loss.ctc": ["0.5"],
    "loss.alignment.column": ["links"],
    "loss.alignment.weight": ["2"],
    "loss.exploration": ["0.1"],
    "loss.baseline_decay": ["0.5"],
    "search.beam": ["1", "4"],
    "search.length_penalty": ["0.5"],
    "search.min_length": ["2", "200"],
    "search.max_length": ["10"],
    "search.avoid_unknown": ["true"],
    "search.replace_unknown": ["true"],
    "search.ctc": ["0.3"],
    "search.consensus": ["2"],
    "evaluation.metrics": ["[bleu]", "[accuracy]", "[perplexity]", "[mse]", "[aer]"],
    "evaluation.baseline": ["copy", "majority", "mean", "unigram"],
    "training.optimizer": ["sgd", "adamw"],
    "training.momentum": ["0.9"],
    "training.weight_decay": ["0.1"],
    "training.schedule": ["constant", "plateau"],
    "training.warmup": ["0"],
    "training.floor": ["0.5"],
    "training.epochs": ["0", "3"],
    "training.minutes": ["0", "3"],
    "training.metric": ["bleu", "perplexity"],
    "training.patience": ["3"],
    "training.scheduled_sampling": ["0.5"],
    "training.bptt": ["20"],
    "training.lanes": ["4"],
    "training.batch_tokens": ["100"],
    "training.film": ["2"],
    "training.samples": ["0"],
    "training.average": ["3"],
}
"""What is set two and three at a time; FIRST, LAST and ALL stand for the names of inputs."""

MEDIA = {
    "image": {
        "inputs.FIRST.height": ["8", "3", "64"],
        "inputs.FIRST.width": ["0", "16"],
        "inputs.FIRST.widest": ["100"],
        "inputs.FIRST.colour": ["grey"],
        "inputs.FIRST.direction": ["right-to-left", "auto"],
        "inputs.FIRST.augment.flip": ["true"],
        "inputs.FIRST.augment.stretch": ["0.1"],
        "encoder.backbone": ["resnet18", "efficientnet-lite0", "timm:some", "smal"],
        "encoder.weights": ["some.pth"],
        "encoder.tuned": ["true"],
        "encoder.channels": ["[8]", "[8, 8, 8, 8, 8, 8, 8, 8]"],
        "encoder.pooled": ["[height]", "[both, height]"],
        "encoder.recurrent": ["{size: 8}", "null"],
        "encoder.recurrent.cell": ["lstm"],
        "encoder.recurrent.reset": ["before"],
        "encoder.patch": ["4", "[8, 2]", "300"],
        "encoder.longest": ["3"],
        "encoder.positions": ["rotary"],
        "output.height": ["7", "16"],
        "output.colour": ["grey"],
        "decoder.reconstruction.channels": ["[8, 4]", "[4]"],
        "decoder.reconstruction.activation": ["tanh"],
        "decoder.reconstruction.output": ["linear"],
    },
    "video": {
        "inputs.FIRST.every": ["3"],
        "inputs.FIRST.rate": ["5"],
        "inputs.FIRST.frames": ["1", "8"],
        "inputs.FIRST.most": ["1", "20"],
        "inputs.FIRST.start": ["2"],
        "inputs.FIRST.end": ["1", "9"],
        "inputs.FIRST.height": ["8", "64"],
        "inputs.FIRST.colour": ["grey"],
        "inputs.FIRST.region": ["[0.2, 0.2, 0.1, 1]", "[0, 0, 0.5, 0.5]"],
        "inputs.FIRST.augment.jitter": ["0.2"],
        "encoder.backbone": ["resnet18", "efficientnet-lite0", "smal"],
        "encoder.tuned": ["true"],
        "encoder.weights": ["some.pth"],
        "encoder.appearance": ["false"],
        "encoder.motion": ["[8]", "[8, 8]", "[]"],
        "encoder.spans": ["[3]", "[2]"],
        "encoder.motion_from": ["changes"],
        "encoder.frame": ["flat"],
        "encoder.channels": ["[8]"],
        "encoder.pooled": ["[both]", "[height, both]"],
        "encoder.longest": ["3"],
        "encoder.feedforward": ["32"],
        "loss.class_weights": ["{forward: 2, backward: 1}"],
    },
    "sound": {
        "inputs.FIRST.rate": ["1000", "8000"],
        "inputs.FIRST.mels": ["4", "200"],
        "inputs.FIRST.window": ["5", "0.01"],
        "inputs.FIRST.hop": ["30", "0.01"],
        "inputs.FIRST.normalise": ["none"],
        "inputs.FIRST.augment.time_masks": ["0", "2"],
        "inputs.FIRST.augment.time_width": ["9"],
        "inputs.FIRST.augment.frequency_masks": ["0", "2"],
        "inputs.FIRST.augment.frequency_width": ["5", "100"],
        "encoder.halvings": ["0", "4"],
        "encoder.stack": ["2"],
        "encoder.longest": ["3"],
        "encoder.patch": ["4"],
    },
    "vector": {
        "inputs.FIRST.standardise": ["false"],
        "inputs.FIRST.noise.kind": ["gaussian", "masking"],
        "inputs.FIRST.noise.amount": ["0.3", "1", "0"],
        "encoder.hidden": ["[8, 4]", "[]"],
        "encoder.activation": ["tanh"],
        "encoder.code": ["relu"],
        "output.standardise": ["false"],
        "decoder.reconstruction.hidden": ["[]", "mirrored", "[8]"],
        "decoder.reconstruction.activation": ["tanh"],
        "decoder.reconstruction.output": ["logistic"],
    },
    "texts": {
        "inputs.FIRST.max_sentences": ["0", "20"],
        "inputs.FIRST.keep": ["last"],
        "inputs.FIRST.sentences": ["newline"],
        "inputs.FIRST.max_length": ["0"],
        "encoder.words": ["attention", "mean"],
        "encoder.pooling_size": ["9"],
        "encoder.longest": ["5"],
        "encoder.feedforward": ["32"],
        "decoder.options": ["{}"],
    },
    "set": {
        "inputs.FIRST.separator": [";"],
        "inputs.more": ["{kind: set, share: FIRST, separator: tab}", "{kind: set, share: FIRST}"],
        "encoder.summary_layers": ["1", "0"],
        "encoder.layers": ["4"],
    },
}
"""Further ones, by the kind of the first input."""

WANTED: list[tuple[str, ...]] = [
    ("language-model", "loss.consistency=1"),
    ("a stream", "loss.consistency=1"),
    ("autoencoder", "decoder.reconstruction.hidden=[]", "decoder.reconstruction.activation=tanh"),
    ("image-autoencoder", "decoder.reconstruction.pixels=dense", "decoder.reconstruction.channels=[8]"),
    ("image-autoencoder", "decoder.reconstruction.pixels=dense"),
    ("one text", "decoder.size=!!int many"),
    ("one text", f"{'.'.join('abcdefghijklmnopqrstuvwxyzabcdefghi')}=1"),
    ("one text", "inputs.source.kind=sound", "encoder.kind=transformer", "encoder.embedding.size=8"),
    ("a sound", "encoder.kind=transformer", "encoder.embedding.size=8"),
    ("transformers", "encoder.stack=2", "encoder.patch=4"),
    *(("encoders of their own", f"inputs.b.encoder.self_attention={score}") for score in [*SCORES, "addtive"]),
    *(("visual-question-answering", f"inputs.question.encoder.self_attention={score}") for score in SCORES),
    *(("encoders of their own", f"inputs.a.encoder.heads={heads}") for heads in (2, 3, 5, 64)),
    *(("encoders of their own", f"inputs.a.encoder.positions={one}") for one in ("rotary", "learned", "none")),
    ("encoders of their own", "inputs.a.encoder.positions=learned", "inputs.a.encoder.longest=5"),
    ("encoders of their own", "inputs.a.encoder.positions=learned", "inputs.a.max_length=600"),
    ("encoders of their own", "inputs.a.encoder.positions=learned", "inputs.a.max_length=60"),
    *((name, f"encoder.recurrent={one}") for name in ("video-captioning", "a video") for one in ("true", "false", "3")),
    *(("a video", "encoder.kind=video", f"encoder.recurrent={one}") for one in ("true", "false")),
    *(("a video", f"inputs.video.encoder.recurrent={one}") for one in ("true", "false")),
]
"""For rules that no other case meets."""

SHARES = {
    "value": 0.05,
    "wrong": 0.022,
    "elsewhere": 0.02,
    "misspelt": 0.06,
    "pair": 0.003,
    "media": 0.05,
    "triple": 0.0012,
    "malformed": 0.1,
    "complete": 0.1,
}
"""Of all cases of a kind those that are taken, by their hash."""


def cases(keys: Sequence[Key], shipped: Mapping[str, str]) -> tuple[dict[str, Source], list[Case]]:
    """The sources by name, and the cases; shipped: the texts of the recipes that come with the package."""
    sources = {name: Source(text) for name, text in {**SMALL, **shipped}.items()}
    made: dict[Case, None] = dict.fromkeys(map(Case, sources))
    for name, source in list(sources.items()):
        raw = parsed(source.text)
        made |= dict.fromkeys(_single(name, raw, keys))
        made |= dict.fromkeys(_several(name, raw))
        made |= dict.fromkeys(_malformed(name, raw))
    made |= dict.fromkeys(_in_one_group(sources))
    made |= dict.fromkeys(Case(name, tuple(overrides)) for name, *overrides in WANTED)
    tried, further = _collected(sources)
    sources |= tried
    made |= dict.fromkeys(further)
    sources |= {f"file {number}": Source(text, "file") for number, text in enumerate(FILES, 1)}
    made |= dict.fromkeys(Case(name) for name in sources if Case(name) not in made)
    return sources, list(made)


def complete(name: str, dump: Mapping[str, Any]) -> tuple[Source, list[tuple[str, ...]]]:
    """The recipe of a model's folder, and the overrides to try on it; dump: what the source of that name was made."""
    atoms = _atoms(dump)
    chosen = [(one,) for one in atoms if _taken(f"complete {name} {one}", SHARES["complete"])]
    pairs = [pair for pair in combinations(atoms, 2) if _taken(f"complete {name} {pair}", SHARES["complete"] / 200)]
    return Source(yaml.safe_dump(dict(dump), sort_keys=False, width=1000), "complete"), [(), *chosen, *pairs]


def _taken(text: str, share: float) -> bool:
    return number_of(text) % 1_000_000 < share * 1_000_000


def _inputs(raw: Mapping[str, Any]) -> list[str]:
    given = raw.get("inputs")
    return list(given) if isinstance(given, dict) else []


# ---------------------------------------------------------------- one key at a time


def _single(name: str, raw: Mapping[str, Any], keys: Sequence[Key]) -> Iterator[Case]:
    """Every key of use with some value, those that say what kind a thing is with all; some of the others."""
    for path, allowed in _merged([*keys, *FURTHER]).items():
        for place in _places(path, raw):
            fitting, wrong = values_of(path, allowed, _inputs(raw))
            overrides = [f"{place}={value}" for value in fitting]
            if _lies_in(place, raw):
                always = path in NAMING or path.endswith((".kind", ".score", ".choice", ".scope", ".cell"))
                if name not in SMALL:
                    yield Case(name, (overrides[number_of(f"{name} {place}") % len(overrides)],))
                yield from _some(name, overrides, 1.0 if always else SHARES["value"])
            yield from _some(name, overrides, SHARES["elsewhere"])
            yield from _some(name, [f"{place}={value}" for value in wrong], SHARES["wrong"])
            yield from _some(name, [f"{misspelt(place)}=1"], SHARES["misspelt"])


def _some(name: str, overrides: Sequence[str], share: float) -> Iterator[Case]:
    made = (Case(name, (one,)) for one in overrides)
    return (case for case in made if _taken(str(case), share))


def _merged(keys: Sequence[Key]) -> dict[str, list[str]]:
    """{path: all that is said to be allowed there}, since kinds of one group share some of their keys."""
    found: dict[str, list[str]] = {}
    for path, allowed, _ in keys:
        said = found.setdefault(path, [])
        said += [allowed] if allowed not in said else []
    return found


def _places(path: str, raw: Mapping[str, Any]) -> list[str]:
    """Where a key can stand in a recipe: below each input, and in the encoders that inputs have of their own."""
    if "NAME" in path:
        return [path.replace("NAME", name) for name in _inputs(raw) or ["x"]]
    inside = [f"inputs.{name}.{path}" for name in _own_encoders(raw)] if path.startswith("encoder.") else []
    return [path, *inside]


def _lies_in(place: str, raw: Mapping[str, Any]) -> bool:
    """Whether a key is of use there, as far as a glance tells: keys of other kinds of encoder and input are not."""
    *groups, key = place.split(".")
    if groups[:1] not in (["inputs"], ["encoder"]):
        return True
    here: Any = raw
    for group in groups:
        here = here.get(group) if isinstance(here, dict) else None
    return isinstance(here, dict) and (key in here or key == "kind")


def misspelt(path: str) -> str:
    """The path with two letters of its last key exchanged.

    >>> misspelt("decoder.size"), misspelt("a.foo")
    ('decoder.szie', 'a.ofo')
    """
    group, dot, key = path.rpartition(".")
    middle = len(key) // 2
    turned = f"{key[: middle - 1]}{key[middle]}{key[middle - 1]}{key[middle + 1 :]}"
    return f"{group}{dot}{turned if turned != key and middle else f'{key}x'}"


def values_of(path: str, allowed: Sequence[str], inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """(values that are of the right type, in and out of bounds; values of the wrong type).

    >>> values_of("decoder.cell", ["rnn, gru or lstm"], [])
    (['rnn', 'gru', 'lstm', 'rnnx'], ['3', 'null', '[rnn]', '{}'])
    """
    general = re.sub(r"^inputs\.[^.]+\.(?=encoder\.)", "", path)
    fitting, wrong = list(ALSO.get(general, [])), list[str]()
    if path in NAMING or path.endswith(".share"):
        fitting += _names(inputs)
    for said in allowed:
        more, others = _values(said)
        fitting += more
        wrong += others
    return list(dict.fromkeys(fitting)), [one for one in dict.fromkeys(wrong) if one not in fitting]


def _names(inputs: Sequence[str]) -> list[str]:
    several = [f"[{', '.join(inputs)}]"] if len(inputs) > 1 else []
    parts = [f"{name}.{part}" for name in inputs for part in ("words", "regions")]
    return [*inputs, *several, *parts, *(f"[{name}]" for name in inputs), "none", "[]", "no_such_input", "[none]"]


def _values(said: str) -> tuple[list[str], list[str]]:
    number = re.match(r"(whole number|number)( (?:above|from) [-\d.,]*\d)?(, (?:to|below) [-\d.,]*\d)?", said)
    if number:
        return _numbers(whole=number[1] == "whole number", low=number[2] or "", high=number[3] or "")
    if said == "true or false":
        return ["true", "false", "yes"], ["3", "maybe", "null", "[]"]
    if said == "text":
        return ["something", "''"], ["3", "[a]", "null", "{a: 1}"]
    if said.startswith(("text or list", "list of texts")):
        return ["something", "[a, b]"], ["3", "null", "{a: 1}", "[1]"]
    if said.startswith("list of"):
        return ["[]", "[8]", "[8, 16]", "[1, 1, 1]", "[0]", "[1000001]"], ["8", "null", "[a]", "{}", "[1.5]"]
    if said.startswith("mapping"):
        return ["{}"], ["3", "[]", "null", "{nothing: 1}", "{nothing: {}}", "text"]
    words = [word.strip() for word in re.split(r", or one that.*|, | or ", said) if word.strip()]
    words = [word for word in words if re.fullmatch(r"[\w-]+", word)]
    return [*words, f"{words[0]}x"] if words else [], ["3", "null", f"[{words[0]}]" if words else "[]", "{}"]


def _numbers(*, whole: bool, low: str, high: str) -> tuple[list[str], list[str]]:
    """Some inside, the bounds themselves, and what lies just beyond them."""
    step = 1.0 if whole else 0.001
    found = [2.0, 10.0, 64.0] if whole else [0.25, 0.9, 3.0]
    for bound in (low, high):
        if bound:
            value = float(bound.split()[-1].replace(",", ""))
            found += [value - step, value, value + step]
    written = [str(int(one)) if whole else f"{one:.10g}" for one in found]
    wrong = ["many", "null", "true", "[1]", "{}", "'3'", ".inf", ".nan", "-1"]
    return written, [*wrong, "1.5", "2.0"] if whole else wrong


# ---------------------------------------------------------------- two and three keys at a time


def _atoms(raw: Mapping[str, Any], settings: Mapping[str, Sequence[str]] = PAIRED) -> list[str]:
    """Single overrides for a recipe; those of the encoder go where the recipe says its settings."""
    names = _inputs(raw) or ["x"]
    own = "encoder" not in raw and bool(_own_encoders(raw))
    found = []
    for path, values in settings.items():
        place = f"inputs.FIRST.{path}" if own and path.startswith("encoder.") else path
        for value in values:
            text = f"{place}={value}".replace("FIRST", names[0]).replace("LAST", names[-1])
            found.append(text.replace("ALL", f"[{', '.join(names)}]"))
    return list(dict.fromkeys(found))


def _own_encoders(raw: Mapping[str, Any]) -> list[str]:
    given = {name: raw["inputs"][name] for name in _inputs(raw)}
    return [name for name, one in given.items() if isinstance(one, dict) and "encoder" in one]


def _several(name: str, raw: Mapping[str, Any]) -> Iterator[Case]:
    """Pairs and triples; of the three groups in the middle more, since those depend on each other most."""
    atoms, first = _atoms(raw), next(iter(_inputs(raw)), "")
    media = _atoms(raw, MEDIA.get(raw["inputs"][first].get("kind", "text"), {})) if first else []
    for pair in combinations([*atoms, *media], 2):
        if pair[0].partition("=")[0] == pair[1].partition("=")[0]:
            continue
        if pair[1] in media:
            share = SHARES["media"] * (6 if pair[0] in media else 0.3)
        else:
            groups = {re.split("[.=]", one)[0] for one in pair}
            share = SHARES["pair"] * (1.5 if groups & {"attention", "decoder", "encoder"} else 0.3)
        if _taken(f"{name} {pair}", share):
            yield Case(name, pair)
            if _taken(f"turned {name} {pair}", 0.1):
                yield Case(name, pair[::-1])
        if _taken(f"third {name} {pair}", SHARES["triple"]):
            yield Case(name, (*pair, atoms[number_of(f"{name} {pair}") % len(atoms)]))


def _in_one_group(sources: Mapping[str, Source]) -> Iterator[Case]:
    """Every pair of settings of one group twice: in a plain recipe, and in some other."""
    names = sorted(sources)
    atoms = [f"{path}={value}" for path, values in PAIRED.items() for value in values]
    for pair in combinations(atoms, 2):
        paths = [one.partition("=")[0] for one in pair]
        if paths[0] == paths[1] or paths[0].partition(".")[0] != paths[1].partition(".")[0]:
            continue
        for name in ("one text", names[number_of(f"one group {pair}") % len(names)]):
            raw = parsed(sources[name].text)
            settings = {path: [one.partition("=")[2]] for path, one in zip(paths, pair, strict=True)}
            yield Case(name, tuple(_atoms(raw, settings)))


# ---------------------------------------------------------------- what the tests have tried


def _collected(sources: Mapping[str, Source]) -> tuple[dict[str, Source], list[Case]]:
    content = json.loads(COLLECTED.read_text(encoding="utf-8"))
    new: dict[str, Source] = {}
    known = {source.text.strip(): name for name, source in sources.items()}
    found: list[Case] = []
    for given, overrides in content["calls"]:
        name = given if given in sources else known.setdefault(given, f"tried {len(known)}")
        if name not in sources:
            new[name] = Source(given, "mapping" if isinstance(parsed(given), dict) else "file")
        found.append(Case(name, tuple(overrides)))
    for group in [*([one] for one in content["overrides"]), *content["together"]]:
        fitting = [name for name in sources if _fits(group, sources[name].text)]
        chosen = sorted(fitting or ["one text"], key=lambda name: number_of(f"{group} {name}"))
        found += [Case(name, tuple(group)) for name in chosen[:4]]
    return new, found


def _fits(overrides: Sequence[str], text: str) -> bool:
    """Whether a recipe has the inputs that overrides name."""
    wanted = {match[1] for one in overrides if (match := re.match(r"inputs\.(\w+)\.", one))}
    return wanted <= set(_inputs(parsed(text)))


# ---------------------------------------------------------------- what is no recipe

GROUPS = ["inputs", "output", "data", "encoder", "attention", "decoder", "loss", "training", "search", "evaluation"]
INNER = ("encoder.embedding", "decoder.embedding", "decoder.reconstruction", "loss.alignment", "encoder.recurrent")
NO_GROUPS = ["3", "text", "[1]", "[]", "null", "true", "{}", "{nothing: 1}", "{1: 2}", "[{a: b}]"]


def _malformed(name: str, raw: Mapping[str, Any]) -> Iterator[Case]:
    """Groups that are none, keys that are none, at every level."""
    inputs = [f"inputs.{one}" for one in _inputs(raw)]
    below = [f"{one}.{key}" for one in inputs for key in ("encoder", "augment", "noise", "encoder.embedding")]
    groups = [*GROUPS, *INNER, *inputs, *below]
    yield from _some(name, [f"{group}={value}" for group in groups for value in NO_GROUPS], SHARES["malformed"])
    yield from _some(
        name, [f"{group}.{key}=1" for group in groups for key in ("no_such_key", "siez", "1")], SHARES["malformed"]
    )
    deeper = ["decoder.size.more=3", "attention.score.more=1", "inputs.none={}", "inputs.a b={}", "inputs.output={}"]
    strange = ["no_such_key=1", "decodr.size=3", "decoder.size", "=3", "decoder.size=[", "decoder..size=3", ".=1"]
    strange += ["task=3", "task=", "description=[a]", "decoder.size= 64 ", " decoder.size =64", "task=a: b: c"]
    strange += ["decoder.size=!!int 3", "decoder.size=9223372036854775808", "decoder.dropout=1e-1", "task=2020-01-01"]
    yield from _some(name, [*deeper, *strange, "inputs.training={}", "inputs.more=3", "inputs._x={}"], 0.25)
    whole = ["decoder={}", "decoder.size=8", "decoder={size: 8}", "encoder={}", "encoder.size=8"]
    yield from (Case(name, pair) for pair in combinations(whole, 2) if _taken(f"{name} {pair}", 0.3))


FILES = [
    "",
    "\n\n",
    "# a remark alone\n",
    "null\n",
    "3\n",
    "just text\n",
    "- inputs\n- output\n",
    "[]\n",
    "{}\n",
    "inputs: {source: {}}\ninputs: {other: {}}\n",
    "decoder: {size: 3, size: 4}\n",
    "inputs: {source: {}\n",
    "inputs:\n\tsource: {}\n",
    "inputs: {source: {}}}\n",
    "inputs: [source]\n",
    "inputs:\n  - source: {}\n",
    "inputs: source\n",
    "inputs:\n",
    "inputs: {source: }\n",
    "inputs: {source: text}\n",
    "inputs: {source: [text]}\n",
    "inputs: {3: {}}\n",
    "inputs: {true: {}}\n",
    "inputs: {'': {}}\n",
    "inputs: {a b: {}}\n",
    "inputs: {a.b: {}}\n",
    "inputs: {? [a] : {}}\n",
    "? {a: b}\n: c\n",
    "3: 4\n",
    "inputs: {source: {encoder: []}}\n",
    "inputs: {source: {encoder: recurrent}}\n",
    "inputs: {source: {encoder: {kind: [recurrent]}}}\n",
    "inputs: {source: {kind: {text: 1}}}\n",
    "inputs: {source: {kind: null}}\n",
    "inputs: {source: {tokens: [word]}}\n",
    "inputs: {source: {encoder: {embedding: 3}}}\n",
    "inputs: {source: {encoder: {embedding: {sise: 3}}}}\n",
    "inputs: {source: {nothing: 3}}\noutput: {nothing: 3}\ndecoder: {nothing: 3}\nnothing: 3\n",
    "inputs: {source: {}}\nencoder: {kind: transformer, cell: gru}\n",
    "inputs: {source: {}}\nencoder: {cel: gru, sise: 3, layers: 0}\ndecoder: {size: many, cell: gur}\n",
    "inputs: {source: {}}\nattention: additive\n",
    "inputs: {source: {}}\nattention: [additive]\n",
    "inputs: {source: {}}\nattention: {score: [additive]}\n",
    "inputs: {source: {}}\nattention: false\n",
    "inputs: {source: {}}\nattention:\n",
    "inputs: {source: {}}\noutput: label\n",
    "inputs: {source: {}}\noutput: {kind: [label]}\n",
    "inputs: {source: {}}\noutput: {kind: null}\n",
    "inputs: {source: {}}\noutput:\n",
    "inputs: {source: {}}\ndecoder: transformer\n",
    "inputs: {source: {}}\ndecoder: {kind: {label: 1}}\n",
    "inputs: {source: {}}\ndecoder: {start: {source: 1}}\n",
    "inputs: {source: {}}\ndecoder: {embedding: [1]}\n",
    "inputs: {source: {}}\ndecoder: {options: [1]}\n",
    "inputs: {source: {}}\ndecoder: {options: {a: 1}}\n",
    "inputs: {source: {}}\nattention: {options: {a: 1}}\n",
    "inputs: {source: {}}\nencoder: {options: {a: 1}}\n",
    "inputs: {source: {}}\nloss: {class_weights: [1, 2]}\n",
    "inputs: {source: {}}\nloss: {alignment: links}\n",
    "inputs: {source: {}}\ntraining: {betas: 0.9}\n",
    "inputs: {source: {}}\ntraining: {seed: 99999999999999999999}\n",
    "inputs: {source: {}}\ntraining: {learning_rate: .inf}\n",
    "inputs: {source: {}}\nevaluation: {metrics: bleu}\n",
    "inputs: {source: {}}\nsearch: []\n",
    "inputs: {source: {}}\ndata: {delimiter: ';'}\n",
    "inputs: {source: &a {tokens: bpe}, other: *a}\n",
    "inputs: {source: {<<: {tokens: bpe}, case: lower}}\n",
    "inputs: {source: &a [*a]}\n",
    "inputs: {source: *nothing}\n",
    "inputs: {source: !!python/object:os.system {}}\n",
    "task: !!binary aGVsbG8=\n",
    "task: 2020-01-01\n",
    "task: =\n",
    'task: "\\uD800"\n',
    "--- {}\n--- {}\n",
    "%YAML 9.9\n--- {}\n",
    "task: 'not closed\n",
    "task: |\n  several\n  lines\n",
    "inputs: {a: {share: b}, b: {share: a}}\n",
    "inputs: {a: {share: a}}\n",
    "inputs: {a: {share: b}, b: {kind: texts}}\n",
    "inputs: {output: {}}\n",
    "inputs: {none: {}}\n",
    "inputs: {_a: {}, training: {}, 1a: {}}\n",
    f"inputs: {{source: {{}}}}\nevaluation: {{metrics: [{', '.join(f'[{one}]' for one in range(30))}]}}\n",
    "".join(f"key_{one}: 1\n" for one in range(30)),
    f"task: {'[' * 40}{']' * 40}\n",
]
"""Texts of files: YAML that is none, or no recipe."""
