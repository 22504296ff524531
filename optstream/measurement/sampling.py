"""Which steps are measured."""

from dataclasses import dataclass

from optstream.errors import ParameterError


@dataclass(frozen=True)
class EquallySpaced:
    """`n_samples` steps at fixed residues of the running step index modulo the window.

    A public rule: choosing costs no privacy. Every window of w consecutive steps, wherever periods begin
    and however long days are, holds exactly `n_samples` of them: each residue modulo w meets it once. A
    period that starts at residue 0 and is w steps long has a point at both its ends.

    Source: OptStream, section 4.1; the fixed residues are ours (docs/privacy.md, Lemma 4).
    """

    n_samples: int

    def residues(self, window_length: int) -> tuple[int, ...]:
        """The sampled residues modulo w, rising. Raises ParameterError unless 2 <= n_samples <= w."""
        count = self.n_samples
        if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= window_length:
            raise ParameterError(
                f"n_samples of EquallySpaced must be an integer in [2, {window_length}]; got {count!r}"
            )
        # Half up in integers; the step between points is at least 1, so no two coincide.
        gaps = count - 1
        return tuple((2 * index * (window_length - 1) + gaps) // (2 * gaps) for index in range(count))

    def positions(self, n_steps: int, first_step: int, window_length: int) -> tuple[int, ...]:
        """The sampled steps of a period, counted from its start, rising; may be empty if it is short."""
        chosen = set(self.residues(window_length))
        return tuple(step for step in range(n_steps) if (first_step + step) % window_length in chosen)
