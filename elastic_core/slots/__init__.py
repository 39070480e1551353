"""Interest slots and retrieval by votes (ours), beside the paper's model."""
