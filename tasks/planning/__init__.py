"""What a span of days still lacks, and what filling it in would cost. Nothing here draws."""
