"""A gate between a test and the functions that it has served as tools: see `test_starvation`."""

import threading

BEGUN = list[str]()  # who is inside, or was
GATE = threading.Event()
