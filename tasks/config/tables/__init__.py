"""The tables of the configuration file, each with its keys and their legal ranges."""
