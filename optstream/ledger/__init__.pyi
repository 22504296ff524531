# The public names: read by type checkers, and when the package is imported (docs/decisions/0017).
from .accounting import Stretch as Stretch
from .ledger import Ledger as Ledger
from .ledger import open_ledger as open_ledger
from .lifecycle import Vintage as Vintage
from .records import GuaranteeLoss as GuaranteeLoss
from .records import Key as Key
from .records import ReleaseEvent as ReleaseEvent
from .records import ReleaseOutline as ReleaseOutline
from .records import ReleaseRecord as ReleaseRecord
from .records import ReleaseState as ReleaseState
from .records import Reservation as Reservation
from .records import StreamTerms as StreamTerms
from .records import WindowLoss as WindowLoss
