"""How the ledger's tables came to be: `versions`, each a step from the schema before it, never edited."""
