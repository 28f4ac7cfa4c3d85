"""Trained models for other engines: each file writes one format, and refuses what that engine cannot compute."""
