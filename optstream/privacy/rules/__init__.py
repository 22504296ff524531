"""Public rules that keep every window under its cap while spends are still being chosen."""
