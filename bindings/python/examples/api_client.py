"""A client of an API: a token, retries, pages, errors of its own; and a mock in the place of the server.

    python api_client.py https://api.example.com TOKEN
    python api_client.py --offline

test_api_client.py has its tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import haul


class ApiError(Exception):
    """The API has refused a request."""


class ItemsApi:
    """The items of a server.

    Failures of the network and the statuses of an overloaded server are tried again, as long as the
    server asks for by Retry-After. A POST is sent again only if it did not reach the server."""

    def __init__(self, base: str, token: str) -> None:
        self._base = base.rstrip("/")
        self.session = haul.Session(
            timeout=haul.ClientTimeout(total=30, connect=5),
            retries=haul.Retry(4, backoff=0.2, max_retry_after=60, status_forcelist={429, 502, 503, 504}),
        )
        self.session.headers["Authorization"] = f"Bearer {token}"

    def _call(self, method: str, url: str, **arguments: Any) -> haul.Response:
        response = self.session.request(method, url, **arguments)
        if not response.ok:
            raise ApiError(f"{method} {url}: {response.status_code} {response.reason}")
        return response

    def items(self) -> Iterator[dict[str, Any]]:
        """Yields the items of all pages. The next page is in the Link header."""
        url: str | None = f"{self._base}/items"
        while url is not None:
            response = self._call("GET", url)
            yield from response.json()
            url = response.links.get("next", {}).get("url")

    def add(self, name: str) -> dict[str, Any]:
        """Adds an item and returns it."""
        added: dict[str, Any] = self._call("POST", f"{self._base}/items", json={"name": name}).json()
        return added


def offline(api: ItemsApi) -> None:
    """Answers the requests of an API's client without a server."""

    def answer(request: haul.PreparedRequest) -> haul.Response:
        if request.method == "POST":
            return haul.testing.response(201, json={"id": 2, "name": "new"})
        return haul.testing.response(json=[{"id": 1, "name": "first"}])

    api.session.mount("https://api.example.com/", answer)


if __name__ == "__main__":
    if sys.argv[1] == "--offline":
        api = ItemsApi("https://api.example.com", "none")
        offline(api)
    else:
        api = ItemsApi(sys.argv[1], sys.argv[2])
    print("added", api.add("new"))
    for item in api.items():
        print(item["id"], item["name"])
