"""One file for each published mechanism, composed of the rooms below."""

from optstream.mechanisms.hierarchical import Hierarchical
from optstream.mechanisms.laplace import Laplace
from optstream.mechanisms.optstream import OptStream
from optstream.mechanisms.release import Release
from optstream.mechanisms.sample import Sample
from optstream.mechanisms.uniform import Uniform

__all__ = ["Hierarchical", "Laplace", "OptStream", "Release", "Sample", "Uniform"]
