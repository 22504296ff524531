"""One file for each schema. A step says all that it does itself, for what it could import may change.

SQLite copies a table to change a column (`op.batch_alter_table`), and the copy has no triggers: a step that
changes spends or events makes them again.
"""
