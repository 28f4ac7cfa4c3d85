"""Export: trained models for engines that need no torch."""
