"""The kinds of `seq2see figure`, one file each: parse, call, draw."""

from __future__ import annotations
