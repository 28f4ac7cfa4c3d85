"""Documents, histories and summaries, read sentence by sentence: the answer stands in the right one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.system.small import SMALL_TEXT, SMALL_WRITER, Trained, learn, split

FILLER = ["We went on a {} with friends.", "The {} was long and the street was wet.", "Somebody sold {} at the door."]
THINGS = ["monday", "holiday", "garden", "letter", "window", "bicycle", "river", "table"]
OTHERS = ["soup", "weather", "hotel", "music"]
WORDS = {
    "good": ["splendid", "lovely", "superb"],
    "bad": ["dreadful", "tedious", "hopeless"],
    "mixed": ["uneven", "odd", "curious"],
}


def _filler(draw: random.Random) -> str:
    return draw.choice(FILLER).format(draw.choice(THINGS))


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, list[int]]:
    """Reviews with one sentence about the film and two that say the like of other things: the words alone do not tell.

    With them, where the sentence about the film stands in each of the held-out ones.
    """
    draw = random.Random(7)

    def review() -> dict[str, str]:
        label = draw.choice([*WORDS])
        sentences = [_filler(draw) for _ in range(draw.randint(2, 5))]
        for thing in draw.sample(OTHERS, 2):
            sentences.append(f"The {thing} is {draw.choice(WORDS[draw.choice([*WORDS])])}.")
        draw.shuffle(sentences)
        sentences.insert(draw.randint(0, len(sentences)), f"The film is {draw.choice(WORDS[label])}.")
        return {"text": " ".join(sentences), "label": label}

    rows, held_out = split([review() for _ in range(700)])
    sizes = ["encoder.pooling_size=16", "attention.size=16", "decoder.size=8", "inputs.document.min_count=1"]
    sizes.append("training.batch_tokens=2000")
    folder = tmp_path_factory.mktemp("reviews")
    trained = learn("document-classification", rows, held_out, folder, updates=100, overrides=[*SMALL_TEXT, *sizes])
    where = [str(row["text"]).split("The film")[0].count(".") for row in held_out]
    return trained, where


def test_the_model_looks_at_the_sentence_that_tells(reviews: tuple[Trained, list[int]]) -> None:
    trained, where = reviews
    prediction = trained.model.predict([row["document"] for row in trained.rows])
    hits = [
        int(np.argmax(answer.looks.maps["document"][0])) == place
        for answer, place in zip(prediction, where, strict=True)
    ]
    assert np.mean(hits) >= 0.9


def test_documents_are_classified_by_what_they_say(reviews: tuple[Trained, list[int]]) -> None:
    trained, _ = reviews
    report = trained.model.evaluate(trained.rows)
    assert report.metrics["accuracy"] >= 0.95
    assert report.metrics["macro_f1"] >= 0.95
    assert "naive Bayes" in report.baseline_says
    assert 0.35 <= report.baseline["accuracy"] <= 0.8
    assert trained.model.evaluate(trained.mismatched()).metrics["accuracy"] <= 0.6


def test_words_are_shown_inside_their_sentences(reviews: tuple[Trained, list[int]], tmp_path: Path) -> None:
    trained, _ = reviews
    text = "We went on a holiday. The film is superb. The soup is odd."
    prediction = trained.model.predict(text)
    sentences, words = prediction.looks.maps["document"], prediction.looks.maps["document.words"]
    assert trained.model.places(text) == prediction.looks.inputs["document"]
    assert sentences.shape == (1, 3)
    assert words.shape == (3, sum(prediction.looks.layouts["document.words"]["parts"]))
    assert words.sum(1) == pytest.approx(np.ones(3), abs=1e-5)
    assert prediction.looks.layouts["document.words"]["parts"] == [6, 5, 5]
    assert not words[1, :6].any()
    assert not words[1, 11:].any()
    data = prediction.looks.to_dict()
    assert data["maps"]["document.words"]["rows"] == prediction.looks.inputs["document"]
    page = prediction.looks.save(tmp_path / "look.html").read_text("utf-8")
    assert 'class="share' in page
    assert "superb" in page
    assert prediction.looks.save(tmp_path / "look.png").stat().st_size > 5000


def test_a_reply_takes_up_what_was_said_long_before(tmp_path: Path) -> None:
    draw = random.Random(8)
    foods, areas = ["thai", "french", "greek", "polish"], ["north", "south", "west", "east"]
    chat = ["hello", "good day", "yes please", "thank you", "that is fine", "let me see"]

    def turn(food: str, area: str) -> dict[str, object]:
        history = [
            draw.choice(chat),
            f"i want {food} food",
            draw.choice(chat),
            f"in the {area} part",
            draw.choice(chat),
        ]
        return {"history": history, "response": f"There is {food} food in the {area}."}

    turns = [turn(food, area) for food in foods for area in areas for _ in range(9)]
    draw.shuffle(turns)
    rows, held_out = split(turns, held_out=20)
    small = [
        *SMALL_TEXT,
        *SMALL_WRITER,
        "attention.size=32",
        "training.batch_tokens=800",
        "training.learning_rate=0.01",
    ]
    small.append("inputs.history.max_sentences=5")
    trained = learn("dialog-history", rows, held_out, tmp_path, updates=130, overrides=small, kind="jsonl")

    assert trained.model.evaluate(trained.rows).metrics["bleu_lc"] >= 85
    assert trained.model.evaluate(trained.mismatched()).metrics["bleu_lc"] <= 60
    prediction = trained.model.predict(
        {"history": ["good day", "i want greek food", "let me see", "in the west part", "yes"]}
    )
    assert prediction.text == "there is greek food in the west."
    looks = prediction.looks.maps["history.words"]
    assert looks.sum(1) == pytest.approx(np.ones(len(looks)), abs=1e-5)
    assert (
        prediction.looks.inputs["history.words"][int(looks[prediction.looks.outputs.index("greek")].argmax())]
        == "greek"
    )


def test_a_summary_is_found_through_the_sentences(tmp_path: Path) -> None:
    draw = random.Random(9)
    topics, means = ["parsing", "speech", "dialog", "spelling", "search"], ["rules", "graphs", "memory", "lists"]

    def pair() -> dict[str, str]:
        topic, by = draw.choice(topics), draw.choice(means)
        body = [_filler(draw), f"This paper is about {topic}.", _filler(draw), f"Our work stands on {by}."]
        return {"abstract": " ".join(body), "title": f"{topic} with {by}"}

    rows, held_out = split([pair() for _ in range(500)])
    small = [
        *SMALL_TEXT,
        *SMALL_WRITER,
        "attention.size=32",
        "training.batch_tokens=1500",
        "training.learning_rate=0.01",
    ]
    trained = learn("summarisation-hierarchical", rows, held_out, tmp_path, updates=160, overrides=small)

    report = trained.model.evaluate(trained.rows)
    assert report.metrics["rouge2"] >= 85
    assert report.metrics["rouge2"] > report.baseline["rouge2"] + 50
    assert trained.model.evaluate(trained.mismatched()).metrics["rouge2"] <= 45
