"""`python -m mnemic`."""

import sys

from mnemic.doors.main import main

sys.exit(main())
