"""Where randomness comes from. A noise source is always a required argument; there is no default."""

from optstream.noise.gaussian import discrete_gaussian
from optstream.noise.order import Order, order_noise
from optstream.noise.source import NoiseSource, secure_noise, simulated_noise

__all__ = [
    "NoiseSource",
    "Order",
    "discrete_gaussian",
    "order_noise",
    "secure_noise",
    "simulated_noise",
]
