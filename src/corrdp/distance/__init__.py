"""How much a column tells about the sensitive ones: exact, bounded, private, conditional."""

from __future__ import annotations

from corrdp.distance.result import Distance, Distances, Source

__all__ = ["Distance", "Distances", "Source"]
