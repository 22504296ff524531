"""The noisy measurements of a published day, beside its release: written, and read back."""
