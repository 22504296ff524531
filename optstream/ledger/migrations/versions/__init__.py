"""One file for each schema; a step imports nothing that may change.

SQLite copies a table to change a column (`op.batch_alter_table`), and the copy has no triggers: a step that
changes spends or events makes them again.
"""
