"""HistoryInformed: blocks at drifting times, estimated from all that was released before."""
