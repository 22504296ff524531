"""What a draw waits for: a ledger that is not behind, inputs as they were, a lease in hand, noise that works."""
