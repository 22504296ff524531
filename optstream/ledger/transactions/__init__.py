"""The changes of a ledger, one transaction each: enrol, reserve, leases, transitions, revisions."""
