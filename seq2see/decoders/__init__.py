"""Decoders generate outputs while attending to places; each works alone on plain tensors."""

from __future__ import annotations

from seq2see.decoders.base import Conditions, Decoder, DenseLayers, build_decoder, decoders
from seq2see.decoders.cross_attention import Context, CrossAttention
from seq2see.decoders.ctc import CtcHead
from seq2see.decoders.label import LabelDecoder
from seq2see.decoders.matching import MatchingDecoder
from seq2see.decoders.output_heads import CopyHead, Head, NumbersHead, PixelsHead, SoftmaxHead
from seq2see.decoders.reconstruction import ReconstructionDecoder
from seq2see.decoders.records import DecoderEquations, LayerStep, Ready, State, Step
from seq2see.decoders.recurrent import RecurrentDecoder
from seq2see.decoders.transformer import TransformerDecoder

__all__ = [
    "Conditions",
    "Context",
    "CopyHead",
    "CrossAttention",
    "CtcHead",
    "Decoder",
    "DecoderEquations",
    "DenseLayers",
    "Head",
    "LabelDecoder",
    "LayerStep",
    "MatchingDecoder",
    "NumbersHead",
    "PixelsHead",
    "Ready",
    "ReconstructionDecoder",
    "RecurrentDecoder",
    "SoftmaxHead",
    "State",
    "Step",
    "TransformerDecoder",
    "build_decoder",
    "decoders",
]
