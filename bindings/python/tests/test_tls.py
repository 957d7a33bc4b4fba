"""Certificates: verification, client certificates, error messages, replaced files."""

from __future__ import annotations

import os
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import trustme

import haul
from conftest import PageServer, make_adapter_session
from haul.httpx import HaulTransport


def test_unverified_connections_are_not_reused_for_verified_requests(secure_pages: Any, bundle: str) -> None:
    session = haul.Session()
    assert session.get(secure_pages.url, verify=False).ok
    assert session.get(secure_pages.url, verify=False).ok
    # An unverified connection must not serve a request that wants verification.
    with pytest.raises(haul.exceptions.SSLError):
        session.get(secure_pages.url)
    assert session.get(secure_pages.url, verify=bundle).ok
    before = secure_pages.connections
    assert session.get(secure_pages.url, verify=bundle).ok
    assert secure_pages.connections == before
    with pytest.raises(OSError, match="invalid path"):
        session.get(secure_pages.url, verify="/none/such.pem")
    session.verify = False
    assert session.get(secure_pages.url).ok


def test_missing_ca_file_fails_https_only(
    adapter_session: requests.Session, pages: Any, secure_pages: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for its in (haul.Session(), adapter_session):
        assert its.get(pages.url, verify="/none/such.pem").ok
        for url in (secure_pages.url, secure_pages.url.upper()):
            with pytest.raises(OSError, match="/none/such.pem"):
                its.get(url, verify="/none/such.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/none/such.pem")
    for its in (haul.Session(), adapter_session):
        with pytest.raises(OSError, match="/none/such.pem"):
            its.get(secure_pages.url)
        assert its.get(pages.url).ok


def test_verify_of_a_request_overrides_the_session(adapter_session: requests.Session, secure_pages: Any, bundle: str) -> None:
    for its, refusal in ((haul.Session(), haul.exceptions.SSLError), (adapter_session, requests.exceptions.SSLError)):
        for of_session in (False, bundle):
            its.verify = of_session
            assert its.get(secure_pages.url).ok
            with pytest.raises(refusal):
                its.get(secure_pages.url, verify=True)
            with pytest.raises(refusal):
                its.get(secure_pages.url, verify=True, stream=True)


def test_certificates_are_paths_of_any_type(
    adapter_session: requests.Session, secure_pages: Any, bundle: str
) -> None:
    for its in (haul.Session(), adapter_session):
        for path in (bundle, os.fsencode(bundle), Path(bundle)):
            assert its.get(secure_pages.url, verify=path).ok
        for wrong in (1.5, object()):
            with pytest.raises(TypeError, match="verify"):
                its.get(secure_pages.url, verify=wrong)
            with pytest.raises(TypeError, match="cert"):
                its.get(secure_pages.url, cert=wrong)
        for cert in (b"/none/such.pem", (bundle, b"/none/such.pem"), [Path(bundle), Path("/none/such.pem")]):
            with pytest.raises(OSError, match="invalid path: /none/such.pem"):
                its.get(secure_pages.url, cert=cert)


def test_ssl_context_decides_who_is_trusted(
    adapter_session: requests.Session, secure_pages: Any, authority: trustme.CA, bundle: str
) -> None:
    trusting = ssl.create_default_context(cafile=bundle)
    trusting.minimum_version = ssl.TLSVersion.TLSv1_3
    careless = ssl.create_default_context()
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trustme.CA().configure_trust(other)
    for its, refusal in ((haul.Session(), haul.exceptions.SSLError), (adapter_session, requests.exceptions.SSLError)):
        for context in (trusting, careless):
            assert its.get(secure_pages.url, verify=context).ok
        with pytest.raises(refusal):
            its.get(secure_pages.url, verify=other)


@pytest.mark.parametrize("kind", ["session", "adapter", "transport", "many"])
def test_changed_ssl_context_counts_for_the_next_request(
    adapter_session: requests.Session, secure_pages: Any, bundle: str, kind: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    session = haul.Session()
    session.verify = adapter_session.verify = context  # type: ignore[assignment]
    transport = httpx.Client(transport=HaulTransport(verify=context))

    def is_sent() -> bool:
        try:
            if kind == "many":
                return all(haul.fetch_many([secure_pages.url], session=session))
            its: Any = {"session": session, "adapter": adapter_session, "transport": transport}[kind]
            return its.get(secure_pages.url).status_code == 200
        except (OSError, httpx.ConnectError):
            return False

    assert is_sent()
    trustme.CA().configure_trust(context)
    context.verify_mode, context.check_hostname = ssl.CERT_REQUIRED, True
    assert not is_sent()
    context.load_verify_locations(bundle)
    assert is_sent()
    transport.close()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_ssl_context_with_other_settings_is_refused(secure_pages: Any, bundle: str) -> None:
    def context_with(**settings: Any) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=bundle)
        for name, value in settings.items():
            setattr(context, name, value)
        return context

    for context, message in (
        (context_with(check_hostname=False), "check_hostname"),
        (context_with(verify_flags=ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF), "revocation"),
        (context_with(minimum_version=ssl.TLSVersion.MINIMUM_SUPPORTED, maximum_version=ssl.TLSVersion.TLSv1_1), "TLSv1_1"),
        (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "no CA certificates"),
    ):
        with pytest.raises(TypeError, match=message):
            haul.get(secure_pages.url, verify=context)


def test_refused_client_certificate_is_an_ssl_error(
    adapter_session: requests.Session, authority: trustme.CA, bundle: str, tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    theirs = tmp_path / "theirs.pem"
    trustme.CA().issue_cert("me@example.test").private_key_and_cert_chain_pem.write_to_path(str(theirs))
    with PageServer() as server:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        for its, refusal in ((haul.Session(), haul.exceptions.SSLError), (adapter_session, requests.exceptions.SSLError)):
            for cert, alert in ((None, "CertificateRequired"), (str(theirs), "UnknownCA")):
                with pytest.raises(refusal, match=alert) as raised:
                    its.get(server.url, verify=bundle, cert=cert)
        # Programs look for the error of OpenSSL there.
        error = raised.value.args[0].reason.args[0]
        assert isinstance(error, ssl.SSLError) and error.reason == "TLSV1_ALERT_UNKNOWN_CA"
        assert "tlsv1 alert unknown ca" in str(error)
        server.shutdown()


def test_handshake_failure_has_the_message_of_openssl(adapter_session: requests.Session) -> None:
    # The server has no certificate.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with PageServer() as server:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(requests.exceptions.SSLError, match="sslv3 alert handshake failure"):
            adapter_session.get(server.url, verify=False)
        server.shutdown()


def test_environment_bundle_is_used_with_trust_env(
    secure_pages: Any, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = haul.Session()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
    assert session.get(secure_pages.url).ok
    assert session.get(secure_pages.url, verify=False).ok
    session.trust_env = False
    with pytest.raises(haul.exceptions.SSLError):
        session.get(secure_pages.url)


def test_bundle_without_certificates_is_an_ssl_error(adapter_session: Any, secure_pages: Any, tmp_path: Path) -> None:
    bundle = tmp_path / "empty.pem"
    bundle.write_text("none here")
    for verify in (str(bundle), str(tmp_path)):
        with pytest.raises(requests.exceptions.SSLError, match="no usable CA certificate"):
            adapter_session.get(secure_pages.url, verify=verify)
        with pytest.raises(haul.exceptions.SSLError, match="no usable CA certificate") as caught:
            haul.get(secure_pages.url, verify=verify)
        assert caught.value.request is not None


def test_adapter_does_not_mix_verify_settings(adapter_session: requests.Session, secure_pages: Any, bundle: str) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        adapter_session.get(secure_pages.url)
    assert adapter_session.get(secure_pages.url, verify=False).ok
    with pytest.raises(requests.exceptions.SSLError):
        adapter_session.get(secure_pages.url)
    assert adapter_session.get(secure_pages.url, verify=bundle).ok


@pytest.mark.parametrize("make", [haul.Session, make_adapter_session])
def test_replaced_bundle_applies_to_new_connections(make: Any, tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    new.issue_cert("localhost").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    old.cert_pem.write_to_path(str(bundle))
    with PageServer() as server, make() as session:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        session.verify = str(bundle)
        with pytest.raises((haul.exceptions.SSLError, requests.exceptions.SSLError)):
            session.get(server.url)
        new.cert_pem.write_to_path(str(tmp_path / "new.pem"))
        os.rename(tmp_path / "new.pem", bundle)
        until = time.monotonic() + 20
        # Files are checked once a second.
        while True:
            try:
                assert session.get(server.url).ok
                break
            except (haul.exceptions.SSLError, requests.exceptions.SSLError):
                assert time.monotonic() < until
                time.sleep(0.1)
        server.shutdown()


@pytest.mark.filterwarnings("ignore:ssl:DeprecationWarning")
def test_ssl_context_settings_are_obeyed_or_refused(bundle: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    from haul._ssl_context import options_of

    def context() -> ssl.SSLContext:
        return ssl.create_default_context(cafile=bundle)

    changed = context()
    changed.options |= ssl.OP_NO_TLSv1_3
    assert options_of(changed)["max_tls"] == "TLSv1.2"
    changed = context()
    changed.maximum_version = ssl.TLSVersion.TLSv1_1
    changed.options |= ssl.OP_NO_TLSv1_3
    with pytest.raises(TypeError, match="TLSv1_1 at most"):
        options_of(changed)
    changed = context()
    changed.options |= ssl.OP_NO_TLSv1_2
    assert options_of(changed)["min_tls"] == "TLSv1.3"
    changed = context()
    changed.set_ciphers("ECDHE-RSA-AES256-GCM-SHA384")
    with pytest.raises(TypeError, match="ciphers"):
        options_of(changed)
    changed = context()
    changed.keylog_filename = str(tmp_path / "keys")
    with pytest.raises(TypeError, match="keylog_filename"):
        options_of(changed)
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert "max_tls" not in options_of(context())
