"""The record of a result of ``fetch_many``: a dict with the names of ``haul --jsonl``.

docs/records.schema.json describes it. The engine writes the facts about the transfer; this module adds
the body or the values, and makes the records of requests that were never sent.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping

from ._haul import EngineError, body_text
from .exceptions import InvalidSchema, InvalidURL, MissingSchema, URLRequired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .many import Result

_TIMES = ("namelookup", "connect", "appconnect", "pretransfer", "starttransfer", "redirect", "total")
_SIZES = ("body", "decoded", "heads", "requests", "uploaded")


def record_of(result: Result, body: bool) -> dict[str, Any]:
    """Returns the record of a result; without its body if ``body`` is false."""
    text = transfer_text(result)
    record: dict[str, Any] = _unsent(result) if text is None else json.loads(text)
    if result.error is not None and record["error"] is None:
        # A response hook has raised it.
        record["error"] = _error(2, "setup", str(result.error))
    if result.response is None:
        return record
    if result._query is not None or result._values is not None:
        try:
            record["values"] = _texts(result.values)
        except ValueError as error:
            record["error"] = _error(61, "content_coding", str(error))
    elif body:
        response = result.response
        content = response.content or b""
        found = body_text(content, response.headers.get("content-type"))
        if found is None:
            record["body_base64"] = b64encode(content).decode()
        else:
            record["body"] = found
    return record


def transfer_text(result: Result) -> str | None:
    """Returns the engine's record of the transfer as JSON; ``None`` if nothing was sent."""
    facts: Any = result._facts
    if isinstance(facts, str):
        return facts
    transfer = getattr(facts, "transfer", None) if result.response is None else result.response._reply
    text: str | None = None if transfer is None else transfer.record()
    return text


def _texts(values: list[Any] | dict[str, list[Any]]) -> Any:
    """Returns values as text. JSON values other than strings become JSON text."""
    if isinstance(values, dict):
        return {name: _texts(found) for name, found in values.items()}
    return [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values
    ]


def _error(code: int, name: str, message: str) -> dict[str, Any]:
    return {"code": code, "name": name, "message": message, "remedy": None}


def _unsent(result: Result) -> dict[str, Any]:
    """Returns the record of a request that was not sent."""
    error, item = result.error, result.request
    request = getattr(error, "request", None) or item
    field = request.get if isinstance(request, Mapping) else lambda name, default=None: getattr(request, name, default)
    url = request if isinstance(request, str) else field("url") or ""
    method = "GET" if isinstance(request, str) else field("method") or "GET"
    fault: dict[str, Any] | None
    if error is None:
        # A function of the program has answered.
        fault = None
    elif isinstance(error, InvalidSchema):
        fault = _error(1, "unsupported_scheme", str(error))
    elif isinstance(error, (InvalidURL, MissingSchema, URLRequired)):
        fault = _error(3, "url", str(error))
    elif isinstance(result._facts, EngineError) and len(result._facts.args) == 6:
        _, message, _, _, code, name = result._facts.args
        fault = _error(code, name, message)
    else:
        fault = _error(2, "setup", str(error))
    return {
        "url": re.sub(r"^([^/?#]*//)[^/?#]*@", r"\1", str(url)),
        "effective_url": None,
        "method": str(method),
        "status": None if result.response is None else result.response.status_code,
        "http_version": None,
        "headers": None,
        "error": fault,
        "attempts": {"count": 0, "failed": []},
        "redirects": [],
        "times": dict.fromkeys(_TIMES, 0.0),
        "addresses": {"remote_ip": None, "remote_port": None, "local_ip": None, "local_port": None, "proxy_used": False},
        "bytes": dict.fromkeys(_SIZES, 0),
        "tls": None,
    }
