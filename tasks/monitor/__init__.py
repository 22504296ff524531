"""The state of each day, from facts and the clock; alarms and who was notified."""
