"""The command line: one file per command, each thin: parse, call, print. torch is imported when a command runs."""

from __future__ import annotations

from seq2see.cli.app import main

__all__ = ["main"]
