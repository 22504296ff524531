"""How far measured values are from what all others say of them."""
