"""What larger catalogues, memories and machines need; the core runs without."""
