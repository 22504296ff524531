"""What data must look like at each border. Suites are code; what is judged are metrics, never readings."""
