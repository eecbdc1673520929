"""The ledger: what was fixed and what was released, in order, chained by digests.

Every entry is plain JSON; arrays are base64 of little-endian float64. The digest of an entry
covers the one before it, so nothing can be removed, reordered or edited unnoticed. A ledger
holds released and public values only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.errors import VerificationError

__all__ = ["Ledger", "canonical_json", "decode_array", "decode_number", "digest", "encode_array"]

FloatArray: TypeAlias = NDArray[np.float64]
GENESIS = "0" * 64


def encode_array(values: Any) -> dict[str, Any]:
    """A float64 array as ``{"shape": [...], "float64": base64}``."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return {"shape": list(array.shape), "float64": base64.b64encode(array.tobytes()).decode()}


def decode_array(plain: Any) -> FloatArray:
    """The array that :func:`encode_array` wrote; anything else does not verify."""
    try:
        raw = base64.b64decode(plain["float64"], validate=True)
        array = np.frombuffer(raw, dtype="<f8").reshape(plain["shape"]).astype(np.float64)
    except (KeyError, TypeError, ValueError):
        raise VerificationError("an array in the ledger is damaged") from None
    return array


def encode_number(value: float | None) -> float | str | None:
    """JSON has no infinity: it is written as ``"inf"``."""
    if value is None:
        return None
    if math.isnan(value):
        raise VerificationError("NaN must not stand in a ledger or certificate")
    return "inf" if math.isinf(value) else float(value)


def decode_number(value: Any) -> float:
    """The number that :func:`encode_number` wrote."""
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise VerificationError(f"{value!r} is not a number of a ledger")
    return float(value)


def canonical_json(plain: Any) -> str:
    """One text per value: sorted keys, no spaces, no NaN."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(plain: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(plain).encode()).hexdigest()


@dataclass(frozen=True)
class Ledger:
    """An append-only chain of entries (each a JSON object with a ``"type"``)."""

    entries: tuple[Mapping[str, Any], ...] = ()

    def append(self, kind: str, content: Mapping[str, Any]) -> Ledger:
        """A new ledger with one entry more."""
        entry = {"type": kind, **content, "previous": self.head}
        return Ledger((*self.entries, {**entry, "digest": digest(entry)}))

    @property
    def head(self) -> str:
        """Digest of the last entry."""
        return str(self.entries[-1]["digest"]) if self.entries else GENESIS

    def of_type(self, *kinds: str) -> tuple[Mapping[str, Any], ...]:
        """Entries of the given types, in order."""
        return tuple(entry for entry in self.entries if entry["type"] in kinds)

    def one(self, kind: str) -> Mapping[str, Any]:
        """The only entry of a type; more or fewer do not verify."""
        found = self.of_type(kind)
        if len(found) != 1:
            raise VerificationError(f"the ledger has {len(found)} entries {kind!r} instead of one")
        return found[0]

    def to_list(self) -> list[dict[str, Any]]:
        """Entries as JSON objects."""
        return [dict(entry) for entry in self.entries]

    @classmethod
    def from_list(cls, plain: Sequence[Mapping[str, Any]]) -> Ledger:
        """Entries read back, the chain checked.

        Raises
        ------
        VerificationError
            If an entry was edited, removed, added or moved.
        """
        previous = GENESIS
        for number, entry in enumerate(plain):
            if not isinstance(entry, Mapping) or not {"type", "digest", "previous"} <= set(entry):
                raise VerificationError(f"ledger entry {number} is incomplete")
            body = {key: value for key, value in entry.items() if key != "digest"}
            if entry["previous"] != previous or entry["digest"] != digest(body):
                raise VerificationError(
                    f"ledger entry {number} ({entry['type']}) was changed, moved or removed"
                )
            previous = str(entry["digest"])
        return cls(tuple(dict(entry) for entry in plain))
