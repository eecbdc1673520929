"""The attacks that fit a certificate."""

from __future__ import annotations

from corrdp.audit.linear import linear_attacks, linear_task
from corrdp.audit.run import Attack
from corrdp.errors import ConfigurationError
from corrdp.privacy.certificate import Certificate

__all__ = ["attacks_on"]


def attacks_on(certificate: Certificate, steps: int = 3) -> list[Attack]:
    """Worst-case attacks on the mechanism behind a certificate, for every kind of change.

    Parameters
    ----------
    certificate : Certificate
    steps : int
        Length of the runs of a linear model that are attacked.

    Raises
    ------
    ConfigurationError
        If there is no training run with optimal calibration and full batches; such mechanisms
        are audited with :func:`corrdp.audit.audit`.
    """
    from corrdp.audit.network import network_attacks

    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ConfigurationError(f"steps={steps!r} must be a whole number >= 1")
    if certificate.ledger.of_type("network-budget"):
        return network_attacks(certificate)
    return linear_attacks(linear_task(certificate, steps))
