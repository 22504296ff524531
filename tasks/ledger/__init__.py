"""The ledger as people see it: shown, verified, exported."""
