"""What a certificate claims, kind by kind, in the measure that an audit tests best."""

from __future__ import annotations

import math

from corrdp.audit.run import Claim
from corrdp.privacy.certificate import Certificate, loss_together
from corrdp.privacy.estimate import declaration_of
from corrdp.verification import accounts_of

__all__ = ["claims_of"]


def claims_of(certificate: Certificate) -> dict[str, Claim]:
    """Claims by neighbour kind: column, group or label name, and the joint kinds.

    With μ where all releases are Gaussian on full batches, otherwise with (ε, δ) alone. The
    joint kinds are ``<sensitive>``, ``<insensitive>`` and ``<record>``.

    Parameters
    ----------
    certificate : Certificate
        Of one ledger, not a combination.

    Raises
    ------
    VerificationError
        If the ledger is damaged or a combination.
    """
    ledger = certificate.ledger
    declaration = declaration_of(ledger)
    accounts = accounts_of(declaration, ledger)
    gaussian = all(one.pure is None and one.subsampling is None for one in accounts)
    claims = {}
    for position, kind in enumerate(declaration.kinds):
        loss = loss_together(accounts, position, certificate.delta)
        mu = math.sqrt(sum(float(one.fixed[position]) ** 2 for one in accounts))
        claims[kind.name] = Claim(loss, certificate.delta, mu if gaussian else None)
    return claims
