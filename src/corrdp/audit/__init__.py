"""Attacks that measure how much a mechanism really gives away (THEORY T13)."""

from corrdp.audit.attribute import (
    AttributeInference,
    belief_shift_lower_bound,
    infer_attribute,
)
from corrdp.audit.bounds import epsilon_lower_bound, mu_lower_bound
from corrdp.audit.run import Attack, AuditReport, Claim, Finding, audit, run_attacks

__all__ = [
    "Attack",
    "AttributeInference",
    "AuditReport",
    "Claim",
    "Finding",
    "audit",
    "belief_shift_lower_bound",
    "epsilon_lower_bound",
    "infer_attribute",
    "mu_lower_bound",
    "run_attacks",
]
