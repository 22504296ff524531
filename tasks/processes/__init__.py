"""Rules of the operating system for processes that hold raw values."""
