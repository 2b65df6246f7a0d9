"""The store in one SQLite file of the state folder, shared by the processes that use the folder."""

from octavo.stores.sqlite.store import SQLiteStore as SQLiteStore
