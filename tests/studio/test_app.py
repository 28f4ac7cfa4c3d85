"""What the server says is what the command line and Python say, whoever else asks at the same time."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import seq2see
from seq2see.cli import main


def approximately(expected: Any) -> Any:
    """The same but for the last digits: sums of a batch round otherwise than those of one row."""
    if isinstance(expected, dict):
        return {name: approximately(part) for name, part in expected.items()}
    if isinstance(expected, list):
        return [approximately(part) for part in expected]
    return pytest.approx(expected, abs=2e-5) if isinstance(expected, float) else expected


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main([str(one) for one in arguments])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def ask(client: TestClient, what: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/{what}", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def without(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    tokens = [{name: one[name] for name in ("text", "probability")} for one in record.get("tokens", [])]
    return {name: part for name, part in record.items() if name not in keys} | {"tokens": tokens}


def test_predictions_are_those_of_the_command_line(
    client: TestClient, speller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["face", "deaf", "a", "bcd"]
    told = ask(client, "predict", model="speller", inputs=words, maps=True)["predictions"]
    expected = command(capsys, "predict", speller, *words, "--json", "--looks", "-")
    assert [without(one, "shown") for one in told] == approximately(expected)
    first = told[0]
    assert len(first["alternatives"]) == 2
    assert first["tokens"][0]["runners_up"][0]["probability"] >= first["tokens"][0]["runners_up"][1]["probability"]
    assert first["shown"]["source"] == {
        "kind": "text",
        "text": "face",
        "symbols": list("face"),
        "spans": [[0, 1], [1, 2], [2, 3], [3, 4]],
    }


def test_a_sample_is_drawn_as_on_the_command_line(
    client: TestClient, babbler: Path, speller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ask(client, "predict", model="babbler", seed=5, n_best=3)["predictions"]
    assert [without(one, "shown", "looks") for one in told] == approximately(
        command(capsys, "predict", babbler, "--seed", 5, "--n-best", 3, "--json", "--sample")
    )
    options = {"sample": True, "seed": 3, "temperature": 2.0}
    told = ask(client, "predict", model="speller", inputs=["face", "deaf"], **options)["predictions"]
    expected = seq2see.load(speller).predict(["face", "deaf"], **options)
    assert [one["text"] for one in told] == [one.text for one in expected]


def test_many_clients_at_once_get_what_each_would_get_alone(client: TestClient, speller: Path) -> None:
    model = seq2see.load(speller)
    words = [a + b + c for a in "abcd" for b in "abcd" for c in "ef"]

    def one(number: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": "speller", "input": words[number], "beam": 1 + number % 2 * 4}
        if number % 3 == 0:
            body["prefix"] = "A B"
        if number % 5 == 0:
            body["oracle"] = {"1": [0, 0, 1]}
        if number % 7 == 0:
            body["oracle"] = {"0": [0.5, 0.1, 0.1]}
        answer = client.post("/api/predict", json=body)
        return {"status": answer.status_code, **answer.json()}

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(len(words))))
    for number, answer in enumerate(answers):
        if number % 7 == 0:
            assert (answer["status"], "must sum to 1, got 0.7" in answer["error"]) == (409, True)
            continue
        options: dict[str, Any] = {"beam": 1 + number % 2 * 4}
        options |= {"prefix": "A B"} if number % 3 == 0 else {}
        options |= {"oracle": {1: [0, 0, 1]}} if number % 5 == 0 else {}
        expected = model.predict(words[number], **options)
        assert answer["predictions"][0]["text"] == expected.text
        assert answer["predictions"][0]["score"] == pytest.approx(expected.score, abs=1e-5)


def test_avoided_prefixes_belong_to_their_request(client: TestClient, speller: Path) -> None:
    first = ask(client, "predict", model="speller", input="face")["predictions"][0]["tokens"][0]["text"]
    other = ask(client, "predict", model="speller", input="face", avoid_prefixes=[first])["predictions"][0]
    assert other["tokens"][0]["text"] != first
    assert other["text"] == seq2see.load(speller).predict("face", avoid_prefixes=[[first]]).text
    assert ask(client, "predict", model="speller", input="face")["predictions"][0]["tokens"][0]["text"] == first


def test_a_prefix_of_symbols_is_gone_on_from(client: TestClient) -> None:
    first = ask(client, "predict", model="speller", input="face")["predictions"][0]
    said = [token["text"] for token in first["tokens"]]
    other = next(one["text"] for one in first["tokens"][1]["runners_up"] if one["text"] not in (said[1], "<eos>"))
    told = ask(client, "predict", model="speller", input="face", prefix=[said[0], other])["predictions"][0]
    assert [token["text"] for token in told["tokens"]][:2] == [said[0], other]
    whole = ask(client, "predict", model="speller", input="face", prefix=["A", "B", "<eos>"])["predictions"][0]
    assert whole["text"] == "A B"


def test_attention_edited_by_hand_is_gone_on_from(client: TestClient, speller: Path) -> None:
    told = ask(client, "oracle", model="speller", input="face", oracle={"1": [0, 0, 0, 1]}, beam=1)
    before, after = told["before"], told["after"]
    assert after["tokens"][0]["text"] == before["tokens"][0]["text"]
    assert after["looks"]["weights"][1] == [0, 0, 0, 1]
    assert before["looks"]["weights"][1] != [0, 0, 0, 1]
    assert after["looks"]["weights"][0] == pytest.approx(before["looks"]["weights"][0], abs=1e-5)
    expected = seq2see.load(speller).predict(
        "face", beam=1, oracle={1: [0, 0, 0, 1]}, prefix=[before["tokens"][0]["text"]]
    )
    assert after["text"] == expected.text
    edited = ask(client, "oracle", model="speller", input="face", oracle={"1": [0, 0, 0, 1]}, said=["D", "<eos>"])
    assert (edited["before"]["text"], edited["after"]["tokens"][0]["text"]) == ("D", "D")


def test_a_given_output_is_followed(client: TestClient, speller: Path) -> None:
    expected = seq2see.load(speller).look("face", target="B A D")
    for target in ("B A D", ["B", "A", "D"], ["B", "A", "D", "<eos>"]):
        told = ask(client, "predict", model="speller", input="face", target=target)["predictions"][0]
        assert told["text"] == "B A D"
        assert told["log_probability"] == pytest.approx(expected.log_probability, abs=1e-5)
        assert told["looks"] == approximately(expected.looks.to_dict())


def test_explanations_and_scores_are_those_of_the_command_line(
    client: TestClient, speller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ask(client, "explain", model="speller", input="face", step=1)["explanation"]
    assert told == approximately(command(capsys, "explain", speller, "face", "--step", 1, "--json")[0])
    (tmp_path / "pairs.tsv").write_text("word\tspelled\nface\tF A C E\ndeaf\tD\n", "utf-8")
    rows = [{"input": "face", "output": "F A C E"}, {"input": "deaf", "output": "D"}]
    scored = ask(client, "score", model="speller", rows=rows)
    arguments = ("score", speller, "--data", tmp_path / "pairs.tsv", "--json")
    assert scored["each"] == approximately(command(capsys, *arguments, "--each"))
    whole = command(capsys, *arguments)[0]
    del whole["seen"]  # which rows a model was trained on is not for strangers to ask
    assert scored["score"] == approximately(whole)
    one = ask(client, "score", model="speller", input="face", output="F A C E")
    assert one["each"] == approximately(scored["each"][:1])


def test_an_edited_step_is_explained_as_it_was_made(client: TestClient, speller: Path) -> None:
    oracle = {"1": [0, 0, 0, 1]}
    edited = ask(client, "oracle", model="speller", input="face", oracle=oracle, beam=1)["after"]
    said = [token["text"] for token in edited["tokens"]]
    told = ask(client, "explain", model="speller", input="face", step=1, target=said, oracle=oracle)["explanation"]
    assert told["looks"][0]["weights"] == [0, 0, 0, 1]
    assert told["probability"] == pytest.approx(edited["tokens"][1]["probability"], abs=1e-5)
    model = seq2see.load(speller)
    own = model.explain("face", step=1, beam=1, oracle={1: [0, 0, 0, 1], 0: [1, 0, 0, 0]})
    expected = model.predict("face", beam=1, oracle={1: [0, 0, 0, 1], 0: [1, 0, 0, 0]})
    assert own.probability == pytest.approx(expected.tokens[1].probability, abs=1e-5)
    assert own.looks[0].energies != pytest.approx(own.looks[0].weights, abs=0.1)


@pytest.mark.parametrize("way", ["form", "data", "example"])
def test_a_picture_comes_in_three_ways(
    client: TestClient, captions: Path, home: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = client.get("/api/models/captions").json()["examples"][0]["inputs"]["image"]["file"]
    content = (home / first).read_bytes()
    if way == "form":
        files = {"image": ("my picture.png", content, "image/png")}
        answer = client.post("/api/predict", data={"model": "captions", "beam": "2"}, files=files)
    else:
        url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
        body = {"model": "captions", "beam": 2, "input": url if way == "data" else {"example": 0}}
        answer = client.post("/api/predict", json=body)
    assert answer.status_code == 200, answer.text
    told = answer.json()["predictions"][0]
    (expected,) = command(capsys, "predict", captions, home / first, "--beam", 2, "--json", "--looks", "-")
    assert without(told, "shown", "input") == approximately(without(expected, "input"))
    assert told["input"] == {"form": "my picture.png", "data": "image.png", "example": first}[way]
    assert told["shown"]["image"]["picture"].startswith("data:image/png;base64,")
    assert told["looks"]["layout"]["kind"] == "grid"
    assert str(home) not in answer.text


def test_several_inputs_and_a_label(client: TestClient, judge: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ask(client, "predict", model="judge", input={"first": "aab", "second": "bab"})["predictions"][0]
    (expected,) = command(capsys, "predict", judge, "aab\tbab", "--json", "--looks", "-")
    assert without(told, "shown") == approximately(without(expected))
    form = client.post("/api/predict", data={"model": "judge", "first": "aab", "second": "bab"}, files={"x": b""})
    assert form.status_code == 422
    assert "file 'x': no input has this name; the model's inputs: first, second" in form.json()["error"]


def test_what_the_model_cannot_read_is_said(client: TestClient) -> None:
    told = ask(client, "predict", model="speller", input="faXe", prefix="A ?")
    assert told["notices"] == [
        "prefix: '?' is not known to the model: read as <unk>",
        "'X' is not known to the model: read as <unk>",
    ]


def test_models_tell_what_they_are(client: TestClient, speller: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = client.get("/api/models").json()["models"]
    assert [one["name"] for one in models] == ["speller", "captions", "judge", "babbler"]
    image = {"name": "image", "column": "image", "kind": "image", "file": True, "noun": "an image", "media": "image/*"}
    assert models[1]["inputs"] == [image]
    assert [models[0]["inputs"][0]["column"], models[0]["output"]["column"]] == ["word", "spelled"]
    assert models[2]["output"] == {"kind": "label", "column": "verdict", "labels": ["alike", "different"]}
    assert models[3]["attention"]["reason"] == "a language model has no input to look at"
    told = client.get("/api/models/speller").json()
    (expected,) = command(capsys, "show", speller, "--json")
    assert {name: told["answers"][0][name] for name in expected} == expected
    assert told["examples"][0].keys() == {"example", "inputs", "output"}
    pictures = client.get("/api/models/captions").json()["examples"]
    assert pictures[0]["inputs"]["image"].keys() == {"file", "example"}
    assert pictures[0]["inputs"]["image"]["file"].endswith(".png")
    file = client.get("/api/models/captions/examples/0/image")
    assert (file.headers["content-type"], file.content[:4]) == ("image/png", b"\x89PNG")
