"""Studies of what pays on somebody's data, in the background; the study itself is elastic_core/study."""
