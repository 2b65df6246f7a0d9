from tests.gate.fixtures import anyio_backend, clock, folder

__all__ = ["anyio_backend", "clock", "folder"]
