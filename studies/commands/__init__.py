"""Commands: how attacks, leakage and experiments are asked for."""
