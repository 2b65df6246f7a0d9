"""Runs one server on an event loop with threads of its own, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

from octavo.app.confinement import raise_wall
from octavo.app.follow import follow
from octavo.app.listeners import Certificate, OwnNames, forget, listen, room_for
from octavo.app.server import Octavo
from octavo.app.watchdog import Watchdog, leave_no_threads
from octavo.config.load import Loaded, state_directory
from octavo.config.units import Bind
from octavo.core.errors import InvalidParams, SourceUnavailable
from octavo.core.fair import let_go
from octavo.core.foreign import owner
from octavo.stores.state import StateDirectory

P = ParamSpec("P")
T = TypeVar("T")

MOST: Final = 16  # of one source, at once


class Threads(ThreadPoolExecutor):
    """Of `asyncio.to_thread`, the default executor of a loop that serves: what sources of plugins ask for does not take
    those of the server.

    The server has few, which never wait for long. A thread that hangs cannot be ended, so each source has a number of
    its own, and the end of the process waits for none of them.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="octavo-loop")
        self._taken: Counter[str] = Counter()
        self._counting = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        name = owner.get()
        return self._apart(name, partial(fn, *args, **kwargs)) if name else super().submit(fn, *args, **kwargs)

    def _apart(self, name: str, work: Callable[[], T]) -> Future[T]:
        with self._counting:
            if self._taken[name] >= MOST:
                raise SourceUnavailable(f"Source unavailable: {name}", source=name)
            self._taken[name] += 1
        done: Future[T] = Future()

        def run() -> None:
            try:
                if done.set_running_or_notify_cancel():
                    done.set_result(work())
            except StopIteration:  # which no future may carry
                done.set_exception(RuntimeError("a function raised StopIteration"))
            except BaseException as error:  # whatever it is belongs to who waits
                done.set_exception(error)
            finally:
                with self._counting:
                    self._taken[name] -= 1

        threading.Thread(target=run, name=f"octavo-{name}", daemon=True).start()
        return done


logger = logging.getLogger(__name__)

FIRST = 2.0  # seconds in which a client that has started the server asks for something


def serve_stdio(loaded: Loaded, *, as_who: str | None, ready: Callable[[], None] = lambda: None) -> None:
    """Serves one client on stdin and stdout until it leaves. `ready` is called before it is heard.

    Raises KeyboardInterrupt once a Ctrl-C has ended it."""

    async def serve(server: Octavo) -> bool:
        from octavo.transport.stdio import serve as mcp

        who = server.works.identity.launched(as_who)
        options = loaded.config.serve
        strict = options.error_codes == "strict"
        ready()
        with _traces(options.traces):
            return await mcp.serve(
                server, who, lane=options.lane, strict_codes=strict, traced=options.traces is not None
            )

    _run(loaded, serve, held=FIRST)


def serve_http(loaded: Loaded, *, bind: Bind, as_who: str | None, no_auth: bool, ready: Callable[[str], None]) -> None:
    """Serves MCP at /mcp until SIGTERM or Ctrl-C. Port 0 takes a free one; `ready` is told the address.

    Raises KeyboardInterrupt once a Ctrl-C has ended it."""
    options = loaded.config.serve
    tls = Certificate(options.http.tls.cert, options.http.tls.key) if options.http.tls and not bind.socket else None
    others = any(peer.uid != os.geteuid() for peer in options.http.peers) if bind.socket else False
    listening = listen(bind, shared=others)

    async def serve(server: Octavo) -> bool:
        from octavo.transport.http import serve as mcp
        from octavo.transport.http.auth import Authentication
        from octavo.transport.http.deadlines import Deadlines

        access = Authentication(everybody=as_who or "") if no_auth else Authentication()
        if no_auth:
            server.works.identity.launched(as_who)
        if tls is not None:
            server.on_swap(tls.renew)
        names = OwnNames(bind, secure=tls is not None)
        app, hub = mcp.application(
            server,
            access=access,
            hosts=[*names.hosts, *_own_host(loaded), *options.http.allowed_hosts],
            origins=[*names.origins, *options.http.allowed_origins],
            lane=options.lane,
            strict_codes=options.error_codes == "strict",
            routes=server.routes,
            body_seconds=options.http.deadlines.body,
            traced=options.traces is not None,
        )
        deadlines = Deadlines(
            headers=options.http.deadlines.headers,
            body=options.http.deadlines.body,
            send=options.http.deadlines.send,
            connections=room_for(options.http.connections),
        )
        context = None if tls is None else tls.context
        with _traces(options.traces):
            return await mcp.serve(
                app,
                hub,
                listening,
                ready,
                tls=context,
                trusted_proxies=options.http.trusted_proxies,
                deadlines=deadlines,
            )

    try:
        _run(loaded, serve, counted=options.http.metrics != "off", keyed=True)
    finally:
        forget(bind)


@contextmanager
def _traces(endpoint: str | None) -> Iterator[None]:
    if endpoint is None:
        yield
        return
    from octavo.transport.mcp.traces import export

    end = export(endpoint)
    try:
        yield
    finally:
        end()


def _own_host(loaded: Loaded) -> list[str]:
    """The name by which tokens know this server."""
    oauth = loaded.config.serve.http.oauth
    return [] if oauth is None else [urlsplit(oauth.resource).netloc]


def _run(
    loaded: Loaded,
    serve: Callable[[Octavo], Awaitable[bool]],
    *,
    counted: bool = False,
    keyed: bool = False,
    held: float | None = None,
) -> None:
    """One house on one event loop, with the configuration file followed, until `serve` says whether Ctrl-C ended it.

    `held`: sources are not watched before something was asked, or so many seconds have passed."""
    # A thread that works for one caller gets its turn beside a loop that is busy with all others. Each of its system
    # calls may have to wait for one, and Python's own 5 ms add up.
    sys.setswitchinterval(0.001)
    state = StateDirectory.open(state_directory(loaded), fail_closed=loaded.config.audit.fail_closed)
    wall = raise_wall(loaded, state)  # before the loop, which starts threads
    threads = {*threading.enumerate()}
    dog = Watchdog()

    async def main() -> bool:
        dog.begin()
        asyncio.get_running_loop().set_default_executor(Threads())
        server = Octavo(loaded, state=state, wall=wall, counted=counted, lasting=True, keyed=keyed)
        if held is not None:
            server.feed.hold(held)
        async with server:
            await _refuse_nothing(server, loaded)
            dog.told = server.held_up
            following = asyncio.ensure_future(follow(server, loaded))
            # What is alive now stays: the collector need not look at it again and again.
            gc.freeze()
            gc.set_threshold(10_000, 10, 10)  # requests leave no cycles: look for them rarely
            gc.enable()
            try:
                return await serve(server)
            finally:
                dog.ending()
                following.cancel()

    try:
        interrupted = _loop()(main())
    finally:
        dog.end()
    let_go()
    leave_no_threads(threads)
    if interrupted:
        raise KeyboardInterrupt


async def _refuse_nothing(server: Octavo, loaded: Loaded) -> None:
    """A server all of whose sources are catalogs that serve nothing helps nobody: raises InvalidParams, which says what
    would serve something. Later, while it runs, they may well become empty."""
    catalogs, exposed = server.works.catalogs, [name for name, one in loaded.config.sources.items() if one.expose]
    if catalogs is None or loaded.config.plugins or not catalogs.by_name.keys() >= {*exposed}:
        return
    why = await catalogs.served_nothing()
    if exposed and all(name in why for name in exposed):
        raise InvalidParams("; ".join(f"sources.{name}: {why[name]}" for name in exposed))


def _loop() -> Callable[[Coroutine[None, None, bool]], bool]:
    if sys.platform != "win32":
        try:
            import uvloop
        except ImportError:
            logger.warning("uvloop is not installed: the event loop of Python itself is used, which is slower")
        else:
            return uvloop.run
    return asyncio.run
