"""Windows and epsilons of classes of customers (Du et al. 2025): docs/privacy.md, Lemma 22; in no ledger."""
