"""The store in PostgreSQL, for several servers on one state. Needs the extra `postgres`."""

from octavo.stores.postgres.store import PostgresStore as PostgresStore
