"""Files that an interrupted training run is continued from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from corrdp.errors import ConfigurationError, VerificationError
from corrdp.files import write_text
from corrdp.nn.account import decode_single, encode_single
from corrdp.nn.trainer import NetworkRun
from corrdp.privacy.ledger import Ledger, decode_array, digest, encode_array

__all__ = ["Checkpoint", "Latest"]

CHECKPOINT_EVERY = 10


@dataclass(frozen=True)
class Checkpoint:
    """A file that an interrupted run is continued from.

    Whoever continues two copies of it draws two different continuations, which is a second
    release that no ledger counts: keep one copy.
    """

    path: Path

    @classmethod
    def at(cls, path: object) -> Checkpoint:
        """The checkpoint in a file that can be written, known before anything is spent.

        Raises
        ------
        ConfigurationError
            If ``path`` is no path, or the path of a folder or of a file nobody can write.
        """
        if not isinstance(path, (str, Path)) or not str(path):
            raise ConfigurationError(f"checkpoint={path!r} must be the path of a file, or None")
        place = Path(path)
        if place.is_dir():
            raise ConfigurationError(f"checkpoint={str(path)!r} is a folder; name a file in it")
        if not place.exists():
            write_text(place, "")
            place.unlink()
        return cls(place)

    def write(self, ledger: Ledger, run: NetworkRun) -> None:
        """Ledger and released iterates, atomically."""
        body = {
            "ledger": ledger.to_list(),
            "iterates": encode_single(run.iterates),
            "sigma": encode_array(run.sigma),
            "dual": None if run.dual is None else encode_array(run.dual),
        }
        write_text(self.path, json.dumps({**body, "digest": digest(body)}, allow_nan=False))

    def read(self) -> tuple[Ledger, NetworkRun] | None:
        """What was written, or None where there is no file.

        Raises
        ------
        VerificationError
            If the file is damaged.
        """
        if not self.path.is_file():
            return None
        try:
            body = json.loads(self.path.read_text(encoding="utf-8"))
            recorded = body.pop("digest")
            if recorded != digest(body):
                raise VerificationError(f"{self.path}: the checkpoint was changed (digest)")
            dual = None if body["dual"] is None else decode_array(body["dual"])
            run = NetworkRun(decode_single(body["iterates"]), decode_array(body["sigma"]), dual)
            return Ledger.from_list(body["ledger"]), run
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise VerificationError(f"{self.path}: not a checkpoint ({error})") from None

    def remove(self) -> None:
        """Forget a finished run."""
        self.path.unlink(missing_ok=True)


class Latest:
    """The latest released iterates, written every few steps and when a run is interrupted."""

    def __init__(self, checkpoint: Checkpoint | None, ledger: Ledger) -> None:
        self.checkpoint, self.ledger = checkpoint, ledger
        self.run: NetworkRun | None = None

    def keep(self, run: NetworkRun) -> None:
        """Called after every step."""
        self.run = run
        if len(run.sigma) % CHECKPOINT_EVERY == 0:
            self.save()

    def save(self) -> None:
        """Write what there is."""
        if self.checkpoint is not None and self.run is not None:
            self.checkpoint.write(self.ledger, self.run)
