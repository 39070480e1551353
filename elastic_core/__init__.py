"""ELASTIC and its peers: efficient linear attention for sequential interest compression, in plain PyTorch."""
