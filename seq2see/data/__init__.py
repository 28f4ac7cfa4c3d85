"""Tables become rows, rows become symbols, symbols become ids, ids become batches. Nothing here knows a model."""
