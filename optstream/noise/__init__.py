"""Where randomness comes from. A noise source is always a required argument; there is no default."""

from optstream.noise.secure import secure_noise
from optstream.noise.simulated import simulated_noise
from optstream.noise.source import NoiseSource

__all__ = ["NoiseSource", "secure_noise", "simulated_noise"]
