"""List the formats that have a JSON Schema, or print the schema of one."""

import json
import sys

from tasks.schemas.json_schema import DOCUMENTS, schema_of

if len(sys.argv) > 1:
    print(json.dumps(schema_of(sys.argv[1]), indent=2))
else:
    print(*DOCUMENTS, sep="\n")
