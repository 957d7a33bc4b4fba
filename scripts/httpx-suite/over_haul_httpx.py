"""``pytest -p over_haul_httpx``: clients of httpx send by haul, unless a test gives them a transport."""

import httpx
import httpx._client

import haul.httpx

sent = 0


def counted(cls, name):
    send = getattr(cls, name)

    def call(self, request):
        global sent
        sent += 1
        return send(self, request)

    setattr(cls, name, call)


counted(haul.httpx.HaulTransport, "handle_request")
counted(haul.httpx.AsyncHaulTransport, "handle_async_request")


def pool_of(cls):
    """Lets tests see which proxy a transport was given, where httpx' own transport shows it."""
    begin = haul.httpx._Transport.__init__

    def init(self, *args, **kwargs):
        self.given_proxy = kwargs.get("proxy")
        begin(self, *args, **kwargs)

    return init, property(lambda self: cls(proxy=self.given_proxy)._pool)


haul.httpx.HaulTransport.__init__, haul.httpx.HaulTransport._pool = pool_of(httpx.HTTPTransport)
haul.httpx.AsyncHaulTransport.__init__, haul.httpx.AsyncHaulTransport._pool = pool_of(httpx.AsyncHTTPTransport)
httpx.HTTPTransport = httpx._client.HTTPTransport = haul.httpx.HaulTransport
httpx.AsyncHTTPTransport = httpx._client.AsyncHTTPTransport = haul.httpx.AsyncHaulTransport


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{sent} requests by haul")


def pytest_sessionfinish(session):
    if not sent:
        session.exitstatus = 1
