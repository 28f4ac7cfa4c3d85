"""Encoders turn inputs into places and summaries; each works alone on plain tensors."""

from __future__ import annotations

from seq2see.encoders.base import ByInput, Encoded, Encoder, InputInfo, build_encoder, check_encoded, encoders
from seq2see.encoders.convolutional import ConvolutionalEncoder
from seq2see.encoders.deep_sets import DeepSetsEncoder
from seq2see.encoders.dense import Dense, DenseEncoder
from seq2see.encoders.hierarchical import HierarchicalEncoder
from seq2see.encoders.layers import masked_mean
from seq2see.encoders.pyramidal import PyramidalEncoder
from seq2see.encoders.recurrent import RecurrentEncoder
from seq2see.encoders.transformer import ImageTransformer, SoundTransformer, TransformerEncoder
from seq2see.encoders.video import VideoEncoder

__all__ = [
    "ByInput",
    "ConvolutionalEncoder",
    "DeepSetsEncoder",
    "Dense",
    "DenseEncoder",
    "Encoded",
    "Encoder",
    "HierarchicalEncoder",
    "ImageTransformer",
    "InputInfo",
    "PyramidalEncoder",
    "RecurrentEncoder",
    "SoundTransformer",
    "TransformerEncoder",
    "VideoEncoder",
    "build_encoder",
    "check_encoded",
    "encoders",
    "masked_mean",
]
