"""What data must look like at each border: Great Expectations suites over metrics, never over readings."""

import os

# before the library is imported, wherever that is: it sends no usage statistics
os.environ["GX_ANALYTICS_ENABLED"] = "false"
