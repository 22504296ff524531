"""The ledger's database: engine, connections, tables and their upgrade."""
