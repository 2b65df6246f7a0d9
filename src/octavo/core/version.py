"""The version of this release, and the folder of its modules. `import octavo` loads this and no more."""

import os

VERSION = "0.1.0"
PACKAGE = os.path.dirname(os.path.dirname(__file__))  # the folder of all modules
