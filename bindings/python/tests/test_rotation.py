"""Certificates that are replaced on disk while a program runs."""

from __future__ import annotations

import os
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme
from conftest import Pages

import haul
from haul.adapters import HaulAdapter


def over_adapter() -> requests.Session:
    session = requests.Session()
    session.mount("https://", HaulAdapter())
    return session


@pytest.mark.parametrize("make", [haul.Session, over_adapter])
def test_replaced_bundle_counts_for_new_connections(make: Any, tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    new.issue_cert("localhost").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    old.cert_pem.write_to_path(str(bundle))
    with Pages() as server, make() as session:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        session.verify = str(bundle)
        with pytest.raises((haul.exceptions.SSLError, requests.exceptions.SSLError)):
            session.get(server.url)
        new.cert_pem.write_to_path(str(tmp_path / "new.pem"))
        os.rename(tmp_path / "new.pem", bundle)
        until = time.monotonic() + 20
        # Files are looked at once a second.
        while True:
            try:
                assert session.get(server.url).ok
                break
            except (haul.exceptions.SSLError, requests.exceptions.SSLError):
                assert time.monotonic() < until
                time.sleep(0.1)
        server.shutdown()
