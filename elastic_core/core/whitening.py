"""Normalisation of queries (ours): decorrelated by statistics of the histories that are served."""

import torch
from torch import Tensor, nn


class Whitening(nn.Module):
    """Decorrelate queries `[B, d]`: x → (x - m) C^(-1/2) with the mean and covariance that `learn` was told (ours).

    Scaling each coordinate, as the batch norm of Lample et al. does, cannot spread a query that is nearly one-dimensional. Axes
    with less than `floor` of the largest variance are not blown up further. A pass changes nothing, in training neither: a
    training batch holds other histories than those that are served."""

    def __init__(self, width: int, floor: float = 1e-3) -> None:
        super().__init__()
        self.floor = floor
        self.mean: Tensor
        self.covariance: Tensor
        self.transform: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("covariance", torch.eye(width))
        self.register_buffer("transform", torch.eye(width))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.transform

    @torch.no_grad()
    def learn(self, queries: Tensor, rate: float) -> None:
        """Move mean and covariance towards those of `queries [B, d]`, as the moments of the mixture: the way between the means
        counts too. Fewer than two change nothing. Raises LinAlgError if a query is not a number, and keeps what was known."""
        if len(queries) < 2:
            return
        if not queries.isfinite().all():
            raise torch.linalg.LinAlgError("the queries to be normalised are no longer numbers")
        queries = queries.to(self.mean.dtype)
        mean = queries.mean(0)
        centred, way = queries - mean, mean - self.mean
        covariance = self.covariance.lerp(centred.T @ centred / len(queries), rate) + rate * (1 - rate) * torch.outer(way, way)
        values, vectors = torch.linalg.eigh(covariance)
        values = values.clamp_min(values[-1].clamp_min(1e-12) * self.floor)
        self.mean.lerp_(mean, rate)
        self.covariance.copy_(covariance)
        self.transform.copy_(vectors @ torch.diag(values.rsqrt()) @ vectors.T)
