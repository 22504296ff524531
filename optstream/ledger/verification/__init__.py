"""Whether a ledger is as it was written: events, releases, revisions and windows."""
