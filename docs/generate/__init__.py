"""The site's source: the pages as they are committed, and the reference, which the code itself knows best."""
