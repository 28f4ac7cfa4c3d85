"""Settings of the parts of a recipe: typed groups of keys, read before anything is built."""

from __future__ import annotations
