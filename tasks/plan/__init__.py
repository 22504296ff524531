"""What a night, a backfill or a dry run would do and cost; nothing is drawn."""
