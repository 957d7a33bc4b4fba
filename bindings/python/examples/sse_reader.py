"""Reads server-sent events (text/event-stream), and continues after the last one if the connection breaks.

    python sse_reader.py https://example.com/events"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import haul


@dataclass
class ServerEvent:
    """An event: its name, its data, and the last identifier that the server gave."""

    name: str = "message"
    data: str = ""
    id: str = ""


@dataclass
class EventReader:
    """The events of a URL, over as many connections as that takes."""

    session: haul.Session
    url: str
    last_id: str = ""
    pause: float = 3.0

    def __iter__(self) -> Iterator[ServerEvent]:
        while True:
            headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
            if self.last_id:
                headers["Last-Event-ID"] = self.last_id
            try:
                with self.session.stream("GET", self.url, headers=headers) as response:
                    if response.status_code == 204:
                        return
                    response.raise_for_status()
                    yield from self._events(line.decode() for line in response.iter_lines())
            except (haul.ConnectionError, haul.Timeout, haul.exceptions.ChunkedEncodingError) as error:
                print(f"{error}; again in {self.pause} s", file=sys.stderr)
            time.sleep(self.pause)

    def _events(self, lines: Iterable[str]) -> Iterator[ServerEvent]:
        name = ""
        data: list[str] = []
        for line in lines:
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if not line:
                if data:
                    yield ServerEvent(name or "message", "\n".join(data), self.last_id)
                name, data = "", []
            elif key == "event":
                name = value
            elif key == "data":
                data.append(value)
            elif key == "id":
                self.last_id = value
            elif key == "retry" and value.isdigit():
                self.pause = int(value) / 1000


if __name__ == "__main__":
    with haul.Session(timeout=(10, None)) as session:
        for event in EventReader(session, sys.argv[1]):
            print(f"{event.id} {event.name}: {event.data}", flush=True)
