"""Attacks that measure how much a mechanism really gives away (THEORY T13)."""

from corrdp.audit.attacks import attacks_on
from corrdp.audit.attribute import (
    AttributeInference,
    belief_shift_lower_bound,
    infer_attribute,
)
from corrdp.audit.bounds import epsilon_lower_bound, mu_lower_bound
from corrdp.audit.claims import claims_of
from corrdp.audit.linear import RecordGuess, linear_attacks, linear_task
from corrdp.audit.run import Attack, AuditReport, Claim, Finding, audit, run_attacks

__all__ = [
    "Attack",
    "AttributeInference",
    "AuditReport",
    "Claim",
    "Finding",
    "RecordGuess",
    "attacks_on",
    "audit",
    "belief_shift_lower_bound",
    "claims_of",
    "epsilon_lower_bound",
    "infer_attribute",
    "linear_attacks",
    "linear_task",
    "mu_lower_bound",
    "run_attacks",
]
