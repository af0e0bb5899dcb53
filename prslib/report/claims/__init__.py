"""The claims that the paper makes in words, and the number that decides each.

`CLAIMS` has them in the order in which the ledger lists them; each stands in a module
beside its formula. `declare` in `base` says how one is made.
"""

from prslib.report.claims import conditions, memory, scores
from prslib.report.claims.base import COCO, Claim, Scores

CLAIMS: dict[str, Claim] = memory.CLAIMS | scores.CLAIMS | conditions.CLAIMS

__all__ = ["CLAIMS", "COCO", "Claim", "Scores"]
