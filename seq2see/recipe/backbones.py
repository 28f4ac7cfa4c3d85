"""Networks that can make a map of a picture, by the names recipes call them by; a test holds them to the classes."""

from __future__ import annotations

import re

from seq2see.errors import nearest

SMALL = "small"
"""The one of our own, which is trained with the rest."""

CARRIED = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
"""Whose weights a package brings along."""

FILED = ("resnet18", "resnet34", "resnet50", "vgg16")
"""Whose weights lie in a file of the user's; without one they begin at random."""

PACKAGES = ("timm", "torchvision")
"""Packages that know networks by name, PACKAGE:NAME, and where their weights are to be had."""

NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Of a network in its package. Names with a scheme (hf-hub:, local-dir:) would have files fetched when a model's folder
is loaded, which somebody else may have written."""

LEAST = 32
"""Pixels on a side that a pre-trained network needs: it halves them five times."""


def unknown_backbone(name: str) -> str | None:
    """What is wrong with the name of a backbone; None where nothing is.

    >>> unknown_backbone("timm:convnext_tiny"), unknown_backbone("resnet-50")
    (None, "unknown backbone 'resnet-50' (did you mean 'resnet50'?); allowed: small, efficientnet-lite0, \
efficientnet-lite1, efficientnet-lite2, resnet18, resnet34, resnet50, vgg16, timm:NAME, torchvision:NAME")
    """
    known = (SMALL, *CARRIED, *FILED)
    package, _, its = name.partition(":")
    if name in known or (package in PACKAGES and NAME.fullmatch(its)):
        return None
    allowed = ", ".join([*known, *(f"{one}:NAME" for one in PACKAGES)])
    return f"unknown backbone '{name}'{nearest(name, known)}; allowed: {allowed}"
