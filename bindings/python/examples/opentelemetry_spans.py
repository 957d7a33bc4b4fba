"""Makes a span of OpenTelemetry for each call of a session, with events for its steps.

    python opentelemetry_spans.py https://example.com/

Needs opentelemetry-sdk."""

from __future__ import annotations

import sys

from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import haul


def trace_session(session: haul.Session, tracer: trace.Tracer) -> None:
    """Traces the calls of a session. The span of a call contains its retries and redirects."""

    def begin(event: haul.Event) -> None:
        if "span" not in event.state:
            # The query may have secrets.
            where = str(event.request.url).partition("?")[0]
            attributes = {"http.request.method": str(event.request.method), "url.full": where}
            span = tracer.start_span(str(event.request.method), kind=trace.SpanKind.CLIENT, attributes=attributes)
            event.state["span"] = span
        # The server can continue the trace.
        propagate.inject(event.request.headers, trace.set_span_in_context(event.state["span"]))
        step(event)

    def step(event: haul.Event) -> None:
        event.state["span"].add_event(event.name, {"attempt": event.attempt})

    def end(event: haul.Event) -> None:
        span = event.state["span"]
        if event.error is not None:
            span.set_attribute("error.type", type(event.error).__name__)
            span.set_status(trace.StatusCode.ERROR)
        elif event.response is not None:
            span.set_attribute("http.response.status_code", event.response.status_code)
            info = event.response.connection_info
            if info is not None:
                span.set_attribute("network.protocol.version", info.http_version.partition("/")[2])
        span.end()

    session.event_hooks = {"request": [begin], "head": [step], "retry": [step], "redirect": [step], "done": [end]}


if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    with haul.Session(timeout=30, retries=2) as session:
        trace_session(session, provider.get_tracer("example"))
        session.get(sys.argv[1])
