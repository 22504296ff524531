"""How epsilon is divided: shares of levels and of stages, exact."""

from collections.abc import Sequence
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.privacy.exact import Exact, exact
from optstream.stream import AggregationTree


def checked_shares(shares: Sequence[Exact], length: int, name: str) -> tuple[Fraction, ...]:
    """Return `length` shares as fractions, none negative, their sum in (0, 1]."""
    if isinstance(shares, str) or len(shares) != length:
        raise ParameterError(f"{name} must have {length} shares; got {shares!r}")
    parts = tuple(exact(share, name) for share in shares)
    listed = ", ".join(map(str, parts))
    if any(part < 0 for part in parts):
        raise ParameterError(f"{name} must not be negative; got {listed}")
    if not 0 < sum(parts) <= 1:
        raise ParameterError(f"{name} must add up to more than 0 and at most 1; got {listed} = {sum(parts)}")
    return parts


def checked_level_shares(shares: Sequence[Exact], tree: AggregationTree) -> tuple[Fraction, ...]:
    """Return one share for each level, root first; a level that holds leaves must have one."""
    parts = checked_shares(shares, tree.n_levels, "level_shares (one for each level, root first)")
    for leaf in tree.leaf_indices:
        if parts[tree.depths[leaf]] == 0:
            raise ParameterError(
                f"level_shares: level {tree.depths[leaf]} holds the leaf {tree.nodes[leaf]!r} and needs a "
                "share above 0; only levels without leaves can be derived from those below"
            )
    return parts
