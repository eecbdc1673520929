"""How much a column tells about the sensitive ones, and how sure that is (THEORY T2, T10).

=====================  ============================================================================
`exact`                a known distribution
`bounds`, `counting`   confidence limits of one contingency table; counting it
`estimate`             all columns of a schema from records that need no protection
`plan`, `private`      the same from noisy tables: cost fixed beforehand, releases, distances
`conditional`          what a column tells an observer who knows the others
`merging`              pooling rare levels along a public order
`summary`              rows and matrices to show
=====================  ============================================================================
"""

from __future__ import annotations

from corrdp.distance.conditional import estimate_conditional, joint_distances
from corrdp.distance.estimate import estimate_distances, exact_distances
from corrdp.distance.exact import dobrushin, total_variation, tv_bernoulli, tv_gaussians
from corrdp.distance.plan import EstimatePlan, plan_estimate
from corrdp.distance.private import PrivateDistances, estimate_private
from corrdp.distance.result import Distance, Distances
from corrdp.distance.settings import EstimateSettings
from corrdp.distance.summary import distance_rows

__all__ = [
    "Distance",
    "Distances",
    "EstimatePlan",
    "EstimateSettings",
    "PrivateDistances",
    "distance_rows",
    "dobrushin",
    "estimate_conditional",
    "estimate_distances",
    "estimate_private",
    "exact_distances",
    "joint_distances",
    "plan_estimate",
    "total_variation",
    "tv_bernoulli",
    "tv_gaussians",
]
