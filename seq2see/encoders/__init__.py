"""Encoders turn inputs into places; each works alone on plain tensors."""

from seq2see.encoders.base import Encoded, encoders
from seq2see.encoders.recurrent import RecurrentEncoder

__all__ = ["Encoded", "RecurrentEncoder", "encoders"]
