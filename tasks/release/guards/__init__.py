"""What a draw needs first: a ledger that is not behind, inputs as they were, a lease, noise that works."""
