"""The changes of a ledger, one transaction each: enrol, reserve, transitions, revisions."""
