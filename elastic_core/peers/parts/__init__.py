"""Layers that peers are made of."""
