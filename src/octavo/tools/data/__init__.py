"""Data of strangers: formats, SQL, profiles, in a process that may be killed. The server imports `child` alone."""
