"""The paper in plain torch: `elastic.py` is the model, read from top to bottom."""
