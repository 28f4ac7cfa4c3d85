"""`seq2see push`: Upload a model with its card to the Hugging Face Hub.

The card has the five answers, metrics with baselines, the columns of the data, a picture of a look and the licence.
Tables and samples of their rows are not uploaded; the picture shows one input (--example chooses it).
"""

from __future__ import annotations

from seq2see.cli.parser import Arguments, Parser, add_model, say

EXAMPLES = (
    "seq2see push runs/transliteration ada/hindi-names --license apache-2.0",
    "seq2see push names.seq2see ada/hindi-names --license cc-by-4.0 --private --example india",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    parser.add_argument("repo", metavar="REPO", help="repository on the Hub: OWNER/NAME; created if it does not exist")
    parser.add_argument(
        "--license", metavar="NAME", required=True, help="licence by the Hub's name: apache-2.0, mit, cc-by-4.0, other"
    )
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument(
        "--example", metavar="INPUT", help="input whose look the card shows (default: the first example of dev)"
    )
    parser.add_argument("--message", metavar="TEXT", help="commit message")


def run(args: Arguments) -> None:
    from seq2see.hub import push

    url = push(
        args.model, args.repo, license=args.license, private=args.private, example=args.example, message=args.message
    )
    print(url)
    say(f"uploaded; anybody who may read it gets it by: seq2see pull {args.repo}")
