"""Data: tables, tokens, vocabularies, batches and media files."""
