"""Rules of whole recipes: settings that do not work together. Each rule has a case in some file of this folder."""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from pathlib import Path

import pytest

import seq2see
from seq2see.recipe import load_recipe
from seq2see.registry import RULES, Problem
from tests.recipe.refusing import LABEL, ONE, TWO, Refused, find_problems, mentions, problems_of

REWARDED = {"loss": {"reward": {"metric": "edit"}}}
TEACHERS, TAUGHT = "loss.distillation.teachers", {"distillation": {"teachers": ["a"]}}
COMBINATIONS = [
    Refused(
        {**ONE, "attention": "adittive"},
        {"attention.score": "kind"},
        "adittive additive dot scaled-dot cosine general concat deep location coverage static uniform none",
    ),
    Refused({"attention": "dot"}, {"attention.score": "attention"}, "dot none"),
    Refused({"attention": {"size": 9}}, {"attention.size": "other-kind"}, "attention.score none"),
    Refused(
        {**ONE, "attention": {"over": []}, "decoder": {"start": "source"}},
        {"attention.over": "attention"},
        "attention.score none",
    ),
    Refused(
        {**ONE, "attention": {"over": "sorce"}, "decoder": {"start": "source"}},
        {"attention.over": "places"},
        "sorce source",
    ),
    Refused({**ONE, "decoder": {"start": "target"}}, {"decoder.start": "input-names"}, "target source none"),
    Refused({**ONE, "decoder": {"every_step": ["x"]}}, {"decoder.every_step": "input-names"}, "x source none"),
    Refused({"inputs": {"my input": {}}}, {"inputs.my input": "input-names"}, "letters digits _"),
    Refused({"inputs": {"output": {}}}, {"inputs.output": "input-names"}, "output"),
    Refused({"inputs": {"training": {}}}, {"inputs.training": "input-names"}, "training"),
    Refused({"inputs": {"_x": {}}}, {"inputs._x": "input-names"}),
    Refused(
        {**LABEL, "decoder": {"kind": "recurrent"}}, {"decoder.kind": "decoder-kind"}, "recurrent label transformer"
    ),
    Refused({**ONE, "decoder": {"kind": "label"}}, {"decoder.kind": "decoder-kind"}, "label text recurrent"),
    Refused({"output": {"kind": "label"}}, {"inputs": "missing-input"}, "label"),
    Refused({**ONE, "data": {"stream": True}}, {"data.stream": "stream"}, "inputs false"),
    Refused({**ONE, "loss": {"distillation": {"teachers": ["a", "a"]}}}, {TEACHERS: "distillation"}, "twice"),
    Refused({"data": {"stream": True}, "loss": TAUGHT}, {TEACHERS: "distillation"}, "stream"),
    Refused(
        {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "vector"}, "loss": TAUGHT},
        {TEACHERS: "distillation"},
        "probabilities",
    ),
    Refused(
        {**ONE, "loss": TAUGHT, "training": {"scheduled_sampling": 0.2}},
        {"training.scheduled_sampling": "distillation"},
        "teachers 0",
    ),
    Refused(
        {**ONE, "decoder": {"copy_from": "source"}, "training": {"noise": {"mask": 0.1}}},
        {"training.noise": "noise"},
        "decoder.copy_from",
    ),
    Refused(
        {**ONE, "loss": {"alignment": {"column": "links"}}, "training": {"noise": {"mask": 0.1}}},
        {"training.noise": "noise"},
        "loss.alignment.column",
    ),
    Refused(
        {"data": {"stream": True}, "loss": {"reward": {"metric": "edit"}}}, {"loss.reward.metric": "reward"}, "stream"
    ),
    Refused({"loss": {"reward": {"metric": "edit"}}}, {"loss.reward.metric": "reward"}, "input"),
    *(
        Refused(recipe, {"loss.reward.metric": "reward"}, "perplexity training.metric evaluation.metrics", overrides)
        for recipe, overrides in (
            ({**ONE, **REWARDED, "training": {"metric": "perplexity"}}, ()),
            ({**ONE, **REWARDED, "evaluation": {"metrics": ["perplexity", "bleu"]}}, ()),
            ("dialog", ["loss.reward.metric=bleu"]),
        )
    ),
    Refused({"search": {"language_model": "lm"}}, {"search.language_model": "language-model"}, "input none"),
    Refused(
        {
            **ONE,
            "decoder": {"copy_from": "source"},
            "search": {"language_model": "lm", "language_model_internal": 0.2},
        },
        {"search.language_model_internal": "language-model"},
        "decoder.copy_from source 0",
    ),
    Refused(
        {**ONE, "training": {"deterministic": True, "minutes": 3, "threads": 2, "precision": "auto"}},
        {f"training.{key}": "deterministic" for key in ("minutes", "threads", "precision")},
        "clock threads processor float32",
    ),
    Refused(
        {**ONE, "training": {"deterministic": True, "minutes": 3, "epochs": 0}},
        {"training.minutes": "deterministic-end"},
        "clock --epochs --updates",
    ),
    Refused(
        {**ONE, "encoder": {"embedding": {"kind": "pretrained"}}},
        {"encoder.embedding.path": "pretrained-path"},
        "pretrained file",
    ),
    Refused(
        {"inputs": {"x": {"encoder": {"embedding": {"kind": "pretrained"}}}}},
        {"inputs.x.encoder.embedding.path": "pretrained-path"},
        "pretrained file",
    ),
    Refused(
        {**ONE, "decoder": {"tied": True, "embedding": {"kind": "one-hot"}}},
        {"decoder.tied": "tied"},
        "one-hot false",
    ),
    Refused(
        {**TWO, "attention": {"over": "a"}},
        {"inputs.b": "unused-input"},
        "attention.over decoder.start decoder.every_step",
    ),
    Refused({**ONE, "output": {"share": "sourse"}}, {"output.share": "share"}, "sourse source"),
    Refused({"inputs": {"a": {"share": "a"}}}, {"inputs.a.share": "share"}, "a none"),
    Refused(
        {"inputs": {"a": {"share": "b"}, "b": {"share": "a"}}},
        {"inputs.a.share": "share", "inputs.b.share": "share"},
        "b a",
    ),
    Refused(
        {**ONE, "output": {"share": "source", "tokens": "character"}},
        {"output.share": "share"},
        "tokens character word source",
    ),
    Refused(
        {**ONE, "attention": {"query": "current", "input_feeding": False}, "decoder": {"output": "state"}},
        {"decoder.output": "attention"},
        "state all attention.input_feeding",
    ),
    Refused({**LABEL, "decoder": {"output": "state"}}, {"decoder.output": "attention"}, "state all"),
    Refused(
        {"evaluation": {"metrics": ["exact", "perplexity"]}}, {"evaluation.metrics": "metrics"}, "exact perplexity"
    ),
    Refused(
        {**LABEL, "evaluation": {"metrics": ["bleu_lc", "accuracy", "perplexity", "exact@5"]}},
        {"evaluation.metrics": "metrics"},
        "bleu_lc exact@5 label",
    ),
    Refused(
        {**ONE, "evaluation": {"metrics": ["accuracy"]}}, {"evaluation.metrics": "metrics"}, "accuracy text perplexity"
    ),
    Refused({"training": {"metric": "bleu"}}, {"training.metric": "metrics"}, "bleu perplexity"),
    Refused(
        {**ONE, "training": {"metric": "exact"}},
        {"training.metric": "metrics"},
        "exact evaluation.metrics bleu chrf perplexity",
    ),
    *(
        Refused({"evaluation": {"baseline": name}}, {"evaluation.baseline": "metrics"}, f"{name} unigram none")
        for name in ("copy", "lead", "frequent", "majority")
    ),
    Refused(
        {**LABEL, "evaluation": {"baseline": "unigram"}},
        {"evaluation.baseline": "metrics"},
        "unigram label copy lead majority bag-of-words",
    ),
    Refused(
        {**ONE, "evaluation": {"baseline": "majority"}},
        {"evaluation.baseline": "metrics"},
        "majority copy lead frequent unigram none",
    ),
    *(
        Refused({**ONE, "evaluation": {"further_baselines": names}}, {"evaluation.further_baselines": "metrics"}, told)
        for names, told in (
            (["majority"], "majority copy lead nearest"),
            (["copy"], "copy"),
            (["unigram"], "unigram"),
            (["nearest", "nearest"], "nearest"),
        )
    ),
    Refused({**ONE, "encoder": {"layers": 600}, "decoder": {"layers": 600}}, {"decoder": "layers"}, "1,201 601 1,000"),
    Refused(
        {"search": {"min_length": 9, "max_length": 8}}, {"search.min_length": "search-lengths"}, "9 search.max_length 8"
    ),
]

SIZES = [
    *(
        Refused(
            {**ONE, "attention": score, "encoder": {"size": 100}},
            {"attention.score": "attention-sizes"},
            f"{score} decoder.size source 256 200 general additive decoder.size=200",
        )
        for score in ("dot", "scaled-dot", "cosine")
    ),
    Refused(
        {**ONE, "decoder": {"start": "source", "start_by": "copy"}},
        {"decoder.start_by": "summary-sizes"},
        "copy decoder.size 256 512 dense decoder.size=512",
    ),
    Refused(
        {**TWO, "decoder": {"start": ["a", "b"], "start_by": "copy", "size": 512}},
        {"decoder.start_by": "summary-sizes"},
        "copy decoder.size 512 1024",
    ),
    Refused(
        {**TWO, "decoder": {"start": "a", "join": "compare"}},
        {"decoder.join": "join"},
        "compare two decoder.start 1",
    ),
    Refused(
        {
            "inputs": {"a": {"encoder": {"size": 8}}, "b": {"encoder": {"size": 4, "bidirectional": False}}},
            "decoder": {"every_step": ["a", "b"], "join": "compare"},
        },
        {"decoder.join": "summary-sizes"},
        "compare 16 a 4 b",
    ),
]


SCORES_OF_LABELS = [
    Refused(
        {**LABEL, "attention": "coverage", "decoder": {"kind": kind}},
        {"attention.score": "attention"},
        "coverage label additive",
    )
    for kind in ("label", "transformer")
]


MATCHED = {**TWO, "output": {"kind": "label"}, "decoder": {"kind": "matching", "start": ["a", "b"]}}
MATCHING = [
    Refused({**MATCHED, "decoder": {"kind": "matching", "start": start}}, {"decoder.start": "matching"}, "two a, b")
    for start in ("a", "none", ["a", "a"])
] + [
    Refused(
        {**MATCHED, "inputs": {"a": {"kind": "vector"}, "b": {}}, "attention": {"over": "b"}},
        {"decoder.start": "matching", "decoder.kind": "matching"},
        "a place",
    ),
    Refused({**MATCHED, "inputs": {"a": {}, "b": {"encoder": {"size": 5}}}}, {"decoder.kind": "matching"}, "512 10"),
]


@pytest.mark.parametrize("case", [*COMBINATIONS, *SIZES, *SCORES_OF_LABELS, *MATCHING], ids=str)
def test_refused_combinations(case: Refused) -> None:
    case.check()


@pytest.mark.parametrize("case", SCORES_OF_LABELS, ids=str)
def test_a_score_that_needs_earlier_steps_is_not_offered_to_a_label(case: Refused) -> None:
    (problem,) = find_problems(case.recipe)
    assert not mentions(problem.message.partition("allowed:")[2], "coverage")
    assert load_recipe({**ONE, "attention": "coverage"}).attention.score == "coverage"


def test_one_mistake_is_one_problem() -> None:
    """`through` has no effect here either, which is not reported again."""
    assert problems_of({**ONE, "attention": {"through": "sentences"}}) == [("attention.through", "through")]


# --- Every rule has a case

PACKAGE = Path(seq2see.__file__).parent
NAMED_BY_THEIR_RULE = ("recipe/rules.py", "recipe/rules_attention.py", "registry.py")
"""Files whose problems get their rule's name from the registry."""


def all_cases() -> dict[str, list[Refused]]:
    """The cases of each test module of this folder."""
    cases: dict[str, list[Refused]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        values = vars(importlib.import_module(f"tests.recipe.{path.stem}")).values()
        lists = [value for value in values if isinstance(value, list)]
        cases[path.stem] = [case for items in lists for case in items if isinstance(case, Refused)]
    return cases


@cache
def syntax_nodes() -> list[tuple[Path, ast.AST]]:
    """Every node of the package's files that have to do with problems of recipes; those of the spaces that `tune`
    searches are tested beside it."""
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "search_space.py"]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return [(path, node) for path, text in texts.items() if "Problem" in text for node in ast.walk(ast.parse(text))]


def calls_of(*functions: str) -> list[tuple[Path, ast.Call]]:
    """Where functions of these names are called in the package."""
    calls = [(path, node) for path, node in syntax_nodes() if isinstance(node, ast.Call)]
    return [(path, call) for path, call in calls if isinstance(call.func, ast.Name) and call.func.id in functions]


def checks_of_settings() -> list[tuple[Path, ast.FunctionDef]]:
    """The method `check(self, recipe, path)` of every class of settings."""
    functions = [(path, node) for path, node in syntax_nodes() if isinstance(node, ast.FunctionDef)]
    signature = ["check", "self", "recipe", "path"]
    return [
        (path, function)
        for path, function in functions
        if [function.name, *(argument.arg for argument in function.args.args)] == signature
    ]


def rule_of(call: ast.Call) -> str | None:
    """The rule that a call of `Problem` names; None where it is no literal."""
    literals = [value for value in call.args[2:3] if isinstance(value, ast.Constant)]
    return str(literals[0].value) if literals else None


def test_every_problem_outside_the_list_of_rules_names_its_rule() -> None:
    unnamed = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path, call in calls_of("Problem")
        if rule_of(call) is None and path.relative_to(PACKAGE).as_posix() not in NAMED_BY_THEIR_RULE
    ]
    assert unnamed == []


def test_every_rule_and_every_check_of_settings_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule is reported by a case, and each place in the package that makes a problem is reached by one."""
    reached: set[tuple[str, int]] = set()
    create = Problem.__init__

    def record(problem: Problem, *values: object, **named: object) -> None:
        frame = sys._getframe(1)
        while frame is not None:
            reached.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        create(problem, *values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Problem, "__init__", record)
    cases = all_cases()
    with importlib.import_module("tests.recipe.test_plugins").plugins():
        rules = {problem.rule for case in cases.pop("test_plugins") for problem in case.find_problems()}
    rules |= {problem.rule for module in cases.values() for case in module for problem in case.find_problems()}

    literals = {rule for _, call in calls_of("Problem") if (rule := rule_of(call)) is not None}
    assert sorted({*RULES, *literals} - rules) == []
    unreached = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, node in [*calls_of("Problem", "no_effect"), *checks_of_settings()]
        if not any((str(path), line) in reached for line in range(node.lineno, (node.end_lineno or 0) + 1))
    ]
    assert unreached == []
