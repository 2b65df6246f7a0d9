"""A store that ends with the process: for tests, and where there is no state folder."""

from octavo.stores.memory.store import MemoryStore as MemoryStore
