"""How much a column tells about the sensitive ones, and how sure that is (THEORY T2, T10)."""

from __future__ import annotations

from corrdp.distance.result import Distance, Distances

__all__ = ["Distance", "Distances"]
