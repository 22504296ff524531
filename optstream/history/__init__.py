"""What HistoryInformed learns: the prior, the blocks that were measured, the posterior."""
