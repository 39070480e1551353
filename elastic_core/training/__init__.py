"""Learning: one step, the loop over epochs, and what is written down."""
