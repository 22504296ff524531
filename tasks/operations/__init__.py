"""What operators do to a stream beside releasing: withdraw, amend, purge, declare noise as known."""
