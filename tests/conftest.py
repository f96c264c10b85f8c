"""Before anything is imported: SciPy looks at this only once."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn's array API checks are skipped
