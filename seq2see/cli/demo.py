"""`seq2see demo`: Train a small model to pronounce English words and try it on words it has not seen.

Takes about two minutes. Figures of where the model looks are saved, and the studio is started, where you can type
your own words and edit the attention.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.parser import Arguments, Parser, comma_separated, integer, number, program, say
from seq2see.cli.serve import HOST, PORT, serve_studio
from seq2see.errors import UserError
from seq2see.zoo import QUICK

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.looks import Prediction
    from seq2see.recipe import Recipe
    from seq2see.samples.packaged import Entry


def write_table(path: Path, words: Iterable[Entry]) -> None:
    from seq2see.data.tables import write

    write(path, ({"word": word, "phonemes": phonemes} for word, phonemes in words), ["word", "phonemes"])


def held_out(words: Iterable[Entry], recipe: Recipe) -> dict[str, list[str]]:
    """{word: its pronunciations} of the words that training holds out for dev, by the same rule."""
    from seq2see.data.split import hold_out, row_hash

    rows = [{"source": word, "output": phonemes} for word, phonemes in words]
    names = list(recipe.inputs)
    split = hold_out(rows, names=names, share=recipe.data.dev_share, most=recipe.data.dev_most)
    words_aside: dict[str, list[str]] = {}
    for row in sorted(split.dev(rows), key=lambda row: row_hash(row, names)):
        words_aside.setdefault(row["source"], []).append(row["output"])
    return words_aside


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  :root {{ color-scheme: light dark }}
  body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
  main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1.5rem }}
  figure {{ margin: 0 }} img {{ width: 100% }}
</style>
<h1>{title}</h1><p>{about}</p>
<main>
{figures}
</main></html>
"""
FIGURE = """\
  <figure>
    <a href="{page}"><img src="{picture}" alt="where the model looked for {caption}"></a>
    <figcaption>{caption}</figcaption>
  </figure>"""


def write_index(folder: Path, title: str, about: str, *, pictures: Sequence[tuple[str, str]]) -> Path:
    """Write index.html; pictures: (name of a .png and .html file without suffix, caption)."""
    figures = [
        FIGURE.format(page=f"{escape(name)}.html", picture=f"{escape(name)}.png", caption=escape(caption))
        for name, caption in pictures
    ]
    path = folder / "index.html"
    page = PAGE.format(title=escape(title), about=escape(about), figures="\n".join(figures))
    path.write_text(page, encoding="utf-8")
    return path


EXAMPLES = ("seq2see demo", "seq2see demo --no-serve --minutes 0.5 --words seq,attention")
RECIPE = "grapheme-to-phoneme"
TABLE = "words.tsv"
SETTINGS = (
    *QUICK,
    "training.average=1",
    "training.threads=1",
    "training.report_every=500",
    "training.dev_rows=200",
)
"""One thread: products this small gain little from two, and on a busy machine two threads wait for each other."""
MEASURED, SHOWN, LETTERS = 400, 8, 7


def arguments(parser: Parser) -> None:
    parser.add_argument("--no-serve", action="store_true", help="save the figures and exit without starting the studio")
    parser.add_argument("--minutes", metavar="M", type=number, default=2.0, help="minutes of training (default: 2)")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("runs/demo"), help="folder of the run (default: runs/demo)"
    )
    parser.add_argument(
        "--words", metavar="A,B", type=comma_separated, help="words to pronounce (default: some that were held out)"
    )
    parser.add_argument("--port", metavar="N", type=integer, default=PORT, help="port of the studio (default: 8000)")


def run(args: Arguments) -> None:
    from seq2see.samples.packaged import pronunciations

    _check(args)
    words = pronunciations()
    say(f"{len(words):,} pronunciations of English words; training for {args.minutes:g} min in {args.out}")
    model = _train(args.out, words, args.minutes)
    unseen = held_out(words, model.recipe)
    _print_accuracy(model, unseen)
    chosen = args.words or [word for word in unseen if len(word) >= LETTERS][:SHOWN]
    folder = args.out / "looks"
    _predict(model, chosen, words, unseen, folder)
    say(f"figures of where it looked: {folder} (open {folder / 'index.html'})")
    say(f"try: {program()} predict {args.out} WORD;  {program()} explain {args.out} WORD")
    if not args.no_serve:
        serve_studio([f"demo={args.out}"], port=args.port if _free(args.port) else 0)


def _free(port: int) -> bool:
    """Whether the port is free: two minutes of training should not end with an error."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return trial.connect_ex((HOST, port)) != 0


def _check(args: Arguments) -> None:
    if not 0 < args.minutes < float("inf"):
        raise UserError(f"--minutes must be above 0, got {args.minutes}")
    if not 0 <= args.port < 1 << 16:
        raise UserError(f"--port must be from 0 to 65535, got {args.port}")
    if args.words is not None and not all(re.fullmatch(r"[A-Za-z]+", word) for word in args.words):
        raise UserError(f"--words: comma-separated words of letters expected, got '{','.join(args.words)}'")
    if (args.out / "recipe.yaml").exists() and not (args.out / TABLE).exists():
        raise UserError(f"--out {args.out} contains a run that is not a demo; give another folder")


def _train(folder: Path, words: list[Entry], minutes: float) -> Model:
    from seq2see.api import train
    from seq2see.locking import lock_folder

    if folder.is_file():
        raise UserError(f"--out {folder} is a file; give a folder")
    with lock_folder(folder):
        write_table(folder / TABLE, words)
    return train(RECIPE, folder / TABLE, out=folder, overrides=SETTINGS, minutes=minutes, overwrite=True)


def _print_accuracy(model: Model, unseen: dict[str, list[str]]) -> None:
    some = list(unseen)[:MEASURED]
    rows = [{"source": word, "output": phonemes} for word in some for phonemes in unseen[word]]
    report = model.evaluate(rows)
    print(f"{report.metrics['exact']:.0%} of {len(some)} unseen words are pronounced correctly")


def _predict(model: Model, chosen: list[str], words: list[Entry], unseen: dict[str, list[str]], folder: Path) -> None:
    known: dict[str, list[str]] = {}
    for word, phonemes in words:
        known.setdefault(word, []).append(phonemes)
    pictures = []
    width = max(map(len, chosen))
    for prediction in model.predict(list(chosen)):
        word = str(prediction.input)
        verdict = _verdict(prediction, known.get(word.lower(), []), seen=word.lower() not in unseen)
        print(f"  {word:<{width}}  {prediction.text}  ({verdict})")
        for suffix in (".png", ".html"):
            prediction.looks.save(folder / f"{word}{suffix}", title=word)
        pictures.append((word, f"{word}: {prediction.text} ({verdict})"))
    about = "Rows are the phonemes the model wrote, columns the letters it read; darker cells have more attention."
    write_index(folder, "How is it pronounced?", about, pictures=pictures)


def _verdict(prediction: Prediction, right: list[str], *, seen: bool) -> str:
    if not right:
        return "not in the dictionary"
    verdict = "right" if prediction.text in right else f"should be {' or '.join(right)}"
    return f"{verdict}; seen in training" if seen else verdict
