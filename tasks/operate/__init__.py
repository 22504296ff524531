"""What a person orders: amend, withdraw, compromise, purge, doctor, keys, simulated dumps."""
