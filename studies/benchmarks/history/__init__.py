"""What HistoryInformed gains from what others know."""
