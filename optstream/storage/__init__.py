"""Files and objects: durable writes, bounded reads, and where folders lie."""
