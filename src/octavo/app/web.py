"""Hosts that may be asked, and the toolset `web`, as the configuration asks for them."""

from __future__ import annotations

from contextlib import AsyncExitStack

from octavo.config.model import Config
from octavo.config.sections.web import Web, WebHost
from octavo.core.external import Socket
from octavo.net.addresses import network
from octavo.net.client import GuardedClient, HostRule, HttpLimits
from octavo.net.dial import VettedNetwork
from octavo.net.sockets import WebSockets
from octavo.tools.builtin.answer_budget import Budget, Media
from octavo.tools.builtin.handles import Handles
from octavo.tools.builtin.web.http_request import http_request_tool
from octavo.tools.builtin.web.websocket import websocket_tool
from octavo.tools.registry import Tool


def client_of(options: Web, stack: AsyncExitStack) -> GuardedClient:
    """What it connects ends with `stack`."""
    client = GuardedClient([_rule(one) for one in options.hosts], _network(options), _limits(options))
    stack.push_async_callback(client.aclose)
    return client


def web_tools(config: Config, client: GuardedClient, stack: AsyncExitStack) -> list[Tool]:
    """What they connect ends with `stack`."""
    options, budget = config.web, Budget(config.limits.answer, config.limits.answer_tokens)
    hosts = "; ".join(f"{one.host} ({', '.join(one.methods)})" for one in options.hosts)
    media = Media(config.limits.media)
    tools = [http_request_tool(client, hosts, seconds=options.time, budget=budget, media=media)]
    if listed := ", ".join(one.host for one in options.hosts if one.websocket):
        connector = WebSockets(client, _network(options), seconds=options.time, message=options.body)
        sockets = Handles[Socket]("socket", _close, most=options.sockets, idle=options.idle)
        stack.push_async_callback(sockets.aclose)
        tools.append(websocket_tool(connector, sockets, listed, budget=budget))
    return tools


def _network(options: Web) -> VettedNetwork:
    rules = [_rule(one) for one in options.hosts if one.host != "*"]
    inside = [network(text) for text in options.inside]
    return VettedNetwork(inside, named=lambda host: any(rule.covers(host) for rule in rules))


async def _close(socket: Socket) -> None:
    await socket.aclose()


def _limits(options: Web) -> HttpLimits:
    return HttpLimits(
        seconds=options.time,
        answer=options.answer,
        body=options.body,
        redirects=options.redirects,
        connections=options.connections,
    )


def _rule(options: WebHost) -> HostRule:
    return HostRule(
        host=options.host,
        methods=frozenset(options.methods),
        ports=frozenset(options.ports),
        plain=options.plain,
        websocket=options.websocket,
        headers={name: value.get_secret_value() for name, value in options.headers.items()},
        takes=frozenset(options.takes),
    )
