"""One sentence to another: translation, entailment written out, summaries, replies, and the sentence itself."""

from __future__ import annotations

import random
from pathlib import Path

from tests.system.small import SMALL_TEXT, SMALL_WRITER, learn, split

SMALL = [*SMALL_TEXT, *SMALL_WRITER]
THINGS = {"house": "casa", "dog": "perro", "tree": "arbol", "boat": "barco", "stone": "piedra", "book": "libro"}
KINDS = {"red": "rojo", "old": "viejo", "small": "pequeno", "white": "blanco", "good": "bueno"}
DEEDS = {"sees": "ve", "wants": "quiere", "loves": "ama", "paints": "pinta"}
ANIMALS = {"dog": "animal", "cat": "animal", "horse": "animal", "man": "person", "girl": "person", "nurse": "person"}


def test_translation_puts_words_where_the_other_language_has_them(tmp_path: Path) -> None:
    draw = random.Random(3)

    def pair() -> dict[str, str]:
        (a, b), (c, d) = ((draw.choice([*KINDS]), draw.choice([*THINGS])) for _ in range(2))
        deed = draw.choice([*DEEDS])
        there = f"{THINGS[b]} {KINDS[a]} {DEEDS[deed]} {THINGS[d]} {KINDS[c]}."
        return {"en": f"the {a} {b} {deed} a {c} {d}.", "de": there}

    rows, held_out = split([pair() for _ in range(600)])
    trained = learn("translation", rows, held_out, tmp_path, updates=140, overrides=SMALL)

    assert trained.model.evaluate(trained.rows).metrics["bleu"] >= 85
    assert trained.untrained.evaluate(trained.rows).metrics["bleu"] <= 5
    assert trained.model.evaluate(trained.mismatched()).metrics["bleu"] <= 50
    assert trained.model.predict("the old dog wants a white boat.").text == "perro viejo quiere barco blanco."


def test_entailment_generation_keeps_what_follows(tmp_path: Path) -> None:
    draw = random.Random(4)

    def pair() -> dict[str, str]:
        who, colour = draw.choice([*ANIMALS]), draw.choice([*KINDS])
        deed = draw.choice(["running", "asleep", "eating", "here"])
        place = draw.choice(["garden", "street", "house", "field"])
        premise = f"A {colour} {who} is {deed} in the {place}"
        return {"premise": premise, "hypothesis": f"The {ANIMALS[who]} in the {place} is {deed}", "label": "entailment"}

    rows, held_out = split([pair() for _ in range(500)])
    sharp = [*SMALL, "loss.label_smoothing=0", "training.learning_rate=0.01"]
    trained = learn("entailment-generation", rows, held_out, tmp_path, updates=180, overrides=sharp)

    report = trained.model.evaluate(trained.rows)
    assert report.metrics["bleu_lc"] >= 90
    assert report.metrics["perplexity"] <= 1.5
    assert trained.untrained.evaluate(trained.rows).metrics["perplexity"] >= 15
    blind = trained.model.evaluate(trained.mismatched()).metrics
    assert blind["bleu_lc"] <= 70
    assert blind["perplexity"] >= 3


def test_summarisation_finds_what_a_document_is_about(tmp_path: Path) -> None:
    draw = random.Random(5)
    topics = ["parsing", "speech", "dialog", "spelling", "search", "tagging"]
    means = ["rules", "graphs", "memory", "lists", "games"]
    filler = ["we also show that it is fast.", "many have tried before us.", "results are given.", "it is hard."]

    def pair() -> dict[str, str]:
        topic, by = draw.choice(topics), draw.choice(means)
        first, second, last = draw.sample(filler, 3)
        body = f"{first} this paper is about {topic}. {second} our work stands on {by}. {last}"
        return {"abstract": body, "title": f"{topic} with {by}"}

    rows, held_out = split([pair() for _ in range(600)])
    trained = learn(
        "summarisation", rows, held_out, tmp_path, updates=80, overrides=[*SMALL, "training.batch_tokens=1200"]
    )

    report = trained.model.evaluate(trained.rows)
    assert report.metrics["rouge2"] >= 85
    assert report.metrics["rouge2"] > report.baseline["rouge2"] + 50
    assert trained.untrained.evaluate(trained.rows).metrics["rouge2"] <= 5
    assert trained.model.evaluate(trained.mismatched()).metrics["rouge2"] <= 45


def test_dialog_takes_up_what_was_said_last(tmp_path: Path) -> None:
    draw = random.Random(6)
    foods, areas = ["thai", "french", "greek", "polish", "cuban", "irish"], ["north", "south", "west", "east"]
    asking = ["I want {} food in the {}.", "Find me a {} place in the {} of town.", "Is there a {} kitchen in the {}?"]

    def turn(food: str, area: str, asked: str) -> dict[str, object]:
        history = [f"no {draw.choice(foods)} food please", "what then?", asked.format(food, area)]
        return {"history": history, "response": f"There is {food} food in the {area}."}

    turns = [turn(food, area, asked) for food in foods for area in areas for asked in asking]
    draw.shuffle(turns)
    rows, held_out = split(turns, held_out=16)
    trained = learn("dialog", rows, held_out, tmp_path, updates=90, overrides=SMALL, kind="jsonl")

    report = trained.model.evaluate(trained.rows)
    assert report.metrics["perplexity"] <= 1.4
    assert report.metrics["bleu_lc"] >= 90
    assert report.metrics["bleu_lc"] > report.baseline["bleu_lc"] + 20
    assert trained.untrained.evaluate(trained.rows).metrics["perplexity"] >= 10
    assert trained.model.evaluate(trained.mismatched()).metrics["perplexity"] >= 2
    assert trained.model.predict("I want greek food in the west.").text == "there is greek food in the west."


def test_sequence_autoencoder_gets_words_back_through_one_vector(tmp_path: Path) -> None:
    draw = random.Random(7)
    words = [*THINGS, *KINDS]
    rows, held_out = split([{"text": " ".join(draw.choices(words, k=draw.randint(2, 4)))} for _ in range(900)])
    trained = learn("sequence-autoencoder", rows, held_out, tmp_path, updates=300, overrides=SMALL)

    assert trained.model.recipe.looked_at == []
    metrics = trained.model.evaluate(trained.rows).metrics
    assert metrics["token_accuracy"] >= 0.8
    assert metrics["recall"] >= 0.8
    assert trained.untrained.evaluate(trained.rows).metrics["token_accuracy"] <= 0.25
    assert trained.model.evaluate(trained.mismatched()).metrics["token_accuracy"] <= 0.4
