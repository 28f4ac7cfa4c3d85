"""The samples by name."""

from __future__ import annotations

from seq2see.samples.base import Sample

SAMPLES = {
    "shapes": Sample(
        "seq2see.samples.shapes",
        "3,300 pictures of two coloured shapes, with captions that name the larger one first",
        ("image-captioning",),
    ),
    "easy-vqa": Sample(
        "seq2see.samples.easy_vqa",
        "5,000 pictures of a coloured shape and 48,248 questions about them (extra `samples`)",
        ("visual-question-answering",),
    ),
    "digits": Sample(
        "seq2see.samples.digits",
        "1,797 handwritten digits, as pictures and as rows of numbers (extra `samples`)",
        ("autoencoder", "image-autoencoder"),
    ),
    "moving-shapes": Sample(
        "seq2see.samples.moving_shapes",
        "1,200 videos of a coloured shape that moves, with captions and labels (extra `video`)",
        ("video-captioning", "video-classification", "arrow-of-time"),
    ),
}
