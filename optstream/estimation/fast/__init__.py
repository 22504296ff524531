"""What FAST computes from noisy samples: filter, extrapolation, and when to sample next."""
