"""Spans for OpenTelemetry, where `serve.traces` names a collector. Nothing here is imported elsewhere.

One span a request, below the caller's own where `_meta` or the headers carry a W3C trace context.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mcp.server._otel import OpenTelemetryMiddleware
from opentelemetry import context, trace
from opentelemetry.propagate import extract

from octavo.core.errors import SourceUnavailable
from octavo.core.version import VERSION
from octavo.transport.http.exchange import Scope

__all__ = ["OpenTelemetryMiddleware", "below", "export"]

_CARRIED = (b"traceparent", b"tracestate")


def export(endpoint: str) -> Callable[[], None]:
    """Sends spans there from now on; what is returned sends the last ones and ends it.

    Raises SourceUnavailable without the extra.
    """
    try:
        sdk: Any = import_module("opentelemetry.sdk.trace")
        exporting: Any = import_module("opentelemetry.sdk.trace.export")
        resources: Any = import_module("opentelemetry.sdk.resources")
        otlp: Any = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ModuleNotFoundError:
        raise SourceUnavailable("serve.traces needs an extra: install Octavo with its extra otel") from None
    about = {"service.name": "octavo", "service.version": VERSION}
    provider = sdk.TracerProvider(resource=resources.Resource.create(about))
    provider.add_span_processor(exporting.BatchSpanProcessor(otlp.OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    end: Callable[[], None] = provider.shutdown
    return end


def below(scope: Scope) -> Callable[[], None]:
    """Lets the spans of this exchange stand below the one that its headers name; ends with what is returned."""
    carried = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _CARRIED}
    found: Any = extract(carried)
    if not carried or not trace.get_current_span(found).get_span_context().is_valid:
        return lambda: None
    token = context.attach(found)
    return lambda: context.detach(token)
