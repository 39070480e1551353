"""Models that are followed event by event: what is kept of a person, and one step of it."""
