"""The SDK is loaded in parts: what is not used is not executed, and what is used is the SDK's own."""

import subprocess
import sys

import pytest

LOADED = """
import sys
from types import ModuleType
def executed(name):
    module = sys.modules.get(name)
    return module is not None and type(module) is ModuleType
"""


def run(code: str) -> str:
    """In a process of its own: here the SDK has long been imported."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED + code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_server_on_stdio_loads_neither_the_client_nor_the_decorator_framework_nor_uvicorn() -> None:
    run("""
import octavo.transport.stdio.serve
assert not executed("mcp") and not executed("mcp.server") and not executed("uvicorn")
assert not any(name.startswith(("mcp.client", "mcp.server.mcpserver")) for name in sys.modules)
""")


def test_a_package_that_was_not_executed_answers_like_any_other_when_it_is_asked() -> None:
    run("""
import octavo.transport.stdio.serve
import mcp, mcp.server
assert mcp.ClientSession.__module__ == "mcp.client.session" and executed("mcp")
assert mcp.server.MCPServer and executed("mcp.server")
""")


@pytest.mark.parametrize(
    ("version", "used", "unused"),
    [
        ("2025-11-25", "mcp_types._v2025_11_25", "mcp_types._v2026_07_28"),
        ("2026-07-28", "mcp_types._v2026_07_28", "mcp_types._v2025_11_25"),
    ],
)
def test_the_models_of_a_protocol_version_are_declared_when_somebody_speaks_it(
    version: str, used: str, unused: str
) -> None:
    run(f"""
import octavo.transport.mcp
from mcp_types import methods
assert not executed({used!r}) and not executed({unused!r})
methods.serialize_server_result("tools/list", {version!r}, {{"tools": [], "resultType": "complete", "ttlMs": 0,
    "cacheScope": "private"}})
assert executed({used!r}) and not executed({unused!r})
""")


def test_every_stand_in_of_the_tables_takes_and_refuses_what_the_model_does() -> None:
    said = run("""
import octavo.transport.mcp
from pydantic import TypeAdapter
from mcp_types import methods
import mcp_types._v2025_11_25 as old, mcp_types._v2026_07_28 as new
tables = (methods.CLIENT_REQUESTS, methods.CLIENT_NOTIFICATIONS, methods.SERVER_RESULTS, methods.CLIENT_RESULTS,
          methods.SERVER_REQUESTS, methods.SERVER_NOTIFICATIONS)
count = 0
for table in tables:
    for (method, version), row in table.items():
        module = new if version >= "2026" else old
        for part in getattr(row, "__args__", (row,)):
            real = getattr(module, part.__name__)
            assert TypeAdapter(part).json_schema() == TypeAdapter(real).json_schema(), part
            count += 1
print(count)
""")
    assert int(said) > 150


def test_models_are_built_when_they_are_first_used_and_only_those_declared_meanwhile() -> None:
    run("""
from octavo.transport.mcp.sdk_lazy import unbuilt
from pydantic import BaseModel
with unbuilt():
    class Later(BaseModel):
        n: int
class Now(BaseModel):
    n: int
assert not Later.__pydantic_complete__ and Now.__pydantic_complete__
assert Later.model_validate({"n": "1"}).n == 1 and Later.__pydantic_complete__
""")


DESCRIBED = """
import json
from pydantic import BaseModel, TypeAdapter
import mcp_types, mcp_types.methods
import mcp_types._types as own, mcp_types.jsonrpc as rpc, mcp_types._v2025_11_25 as old, mcp_types._v2026_07_28 as new
def described(model):
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    def tell(mode):
        try:
            return adapter.json_schema(mode=mode)
        except Exception as fault:
            return type(fault).__name__
    return [tell("validation"), tell("serialization")]
def fields(model):
    if isinstance(model, TypeAdapter):
        return []
    model.model_rebuild()
    return [repr(field) for field in model.model_fields.items()]
told = {}
assert old.InitializeRequest and new.DiscoverRequest  # executed by that, if they are not
for module in (own, rpc, old, new):
    for name in dir(module):
        one = getattr(module, name)
        model = isinstance(one, type) and issubclass(one, BaseModel) and one is not BaseModel
        if model or isinstance(one, TypeAdapter):
            told[f"{module.__name__}.{name}"] = [described(one), fields(one)]
print(len(told), json.dumps(told, sort_keys=True))
"""


def test_models_and_adapters_that_were_left_unbuilt_are_what_the_SDK_declares() -> None:
    lean, whole = run("import octavo.transport.mcp" + DESCRIBED), run("import mcp" + DESCRIBED)
    assert int(lean.split()[0]) > 300
    assert lean == whole


def test_what_the_SDK_declares_is_not_looked_at_before_it_is_used() -> None:
    run("""
import octavo.transport.stdio.serve
from mcp_types import _types
from mcp_types import CallToolRequest, InitializeRequest
assert not _types.client_request_adapter.pydantic_complete
assert not CallToolRequest.__pydantic_complete__ and not dict.__len__(CallToolRequest.__dict__["__pydantic_fields__"])
assert set(CallToolRequest.model_fields) == {"method", "params"} == {*CallToolRequest.__dict__["__pydantic_fields__"]}
assert not CallToolRequest.__pydantic_complete__
whole = _types.client_request_adapter.validate_python({"method": "ping"})
assert whole.method == "ping" and _types.client_request_adapter.pydantic_complete
""")


def test_fields_are_collected_once_whoever_asks_and_however_many_do() -> None:
    run("""
from threading import Barrier, Thread
from octavo.transport.mcp.sdk_lazy import unbuilt
from pydantic import BaseModel
with unbuilt():
    with unbuilt():
        class Base(BaseModel):
            n: int
            later: "Later | None" = None
    class Later(Base):
        m: int = 2
Base.model_rebuild()
together, seen = Barrier(8), []
def ask():
    together.wait()
    seen.append(Later.model_fields)
threads = [Thread(target=ask) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(seen) == 8 and len({id(one) for one in seen}) == 1 and [*seen[0]] == ["n", "later", "m"]
assert Later(n=1, later={"n": 3}).model_dump() == {"n": 1, "later": {"n": 3, "later": None, "m": 2}, "m": 2}
""")


def test_private_attributes_and_hashes_of_models_that_are_left_unbuilt_are_there() -> None:
    run("""
from octavo.transport.mcp.sdk_lazy import unbuilt
from pydantic import BaseModel, PrivateAttr
with unbuilt():
    class Private(BaseModel):
        n: int
        _told: list[int] = PrivateAttr(default_factory=list)
        _plain = 5
    class Bare(BaseModel):
        _declared: int
    class Frozen(BaseModel, frozen=True):
        n: int
one = Private(n=1)
one._told.append(2)
assert one._told == [2] and one._plain == 5 and Private(n=1)._told == []
bare = Bare()
bare._declared = 3
assert bare._declared == 3 and hash(Frozen(n=1)) == hash(Frozen(n=1)) != hash(Frozen(n=2))
""")


def test_a_server_on_stdio_loads_neither_a_web_server_nor_what_seals_state() -> None:
    run("""
import octavo.transport.stdio.serve
assert not executed("mcp.server.auth.routes") and not executed("mcp.server.streamable_http_manager")
assert not {"cryptography", "starlette.requests", "sse_starlette", "uvicorn"} & {*sys.modules}
""")


def test_a_server_over_HTTP_can_be_made_after_one_on_stdio() -> None:
    run("""
import octavo.transport.stdio.serve
from octavo.transport.http.serve import DEFAULT_MAX_SESSIONS, DEFAULT_SESSION_IDLE_TIMEOUT
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
timeout, sessions = DEFAULT_SESSION_IDLE_TIMEOUT, DEFAULT_MAX_SESSIONS
sdk = Server("both")
app = sdk.streamable_http_app(session_idle_timeout=timeout, max_sessions=sessions, max_request_body_size=1)
assert isinstance(sdk.session_manager, StreamableHTTPSessionManager) and isinstance(app, Starlette)
""")


def test_a_function_that_was_promised_is_the_SDKs_own_when_it_is_called() -> None:
    run("""
import octavo.transport.stdio.serve
from mcp.server.lowlevel import server
from pydantic import AnyHttpUrl
told = server.build_resource_metadata_url(AnyHttpUrl("https://octavo.example/mcp"))
assert str(told).endswith("/.well-known/oauth-protected-resource/mcp") and executed("mcp.server.auth.routes")
""")
