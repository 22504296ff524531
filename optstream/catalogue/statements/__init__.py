"""What a release says of itself: its guarantee, its noise and its errors."""
