"""Converts an ``ssl.SSLContext`` of the program into settings of the engine."""

from __future__ import annotations

import ssl
from typing import Any

#: The versions that haul has, with the names that the engine gives them.
_VERSIONS = {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}
_REVOCATION = ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF | ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN


def state_of(context: ssl.SSLContext) -> tuple[Any, ...]:
    """Returns the settings of a context on which its options depend, except its ciphers, which take too
    long to list for each request."""
    return (
        context.verify_mode, context.check_hostname, context.verify_flags, context.options, context.minimum_version,
        context.maximum_version, context.keylog_filename, *context.cert_store_stats().values(),
    )  # fmt: skip


def options_of(context: ssl.SSLContext) -> dict[str, Any]:
    """Returns the keyword arguments of ``SharedOptions`` for a context: whether certificates are
    verified, which authorities are trusted, and the versions of TLS.

    OpenSSL keeps a client certificate to itself, so ``cert=`` has to name it.

    :raises TypeError: the context has a setting that the engine would not obey."""
    _refuse_other_settings(context)
    if context.verify_mode is ssl.CERT_NONE:
        settings: dict[str, Any] = {"verify": False}
    else:
        if not context.check_hostname:
            raise TypeError("an SSLContext that verifies certificates has to check host names, too (check_hostname)")
        if context.verify_flags & _REVOCATION:
            raise TypeError("haul does not read the revocation lists of an SSLContext")
        trusted = context.get_ca_certs(binary_form=True)
        if not trusted:
            raise TypeError("the SSLContext has loaded no CA certificates; pass their file or directory as verify=, or verify=True")
        settings = {"ca_pem": "".join(map(ssl.DER_cert_to_PEM_cert, trusted)).encode("ascii")}
    lowest, highest = context.minimum_version, context.maximum_version
    if context.options & ssl.OP_NO_TLSv1_2:
        lowest = ssl.TLSVersion.TLSv1_3
    if context.options & ssl.OP_NO_TLSv1_3 and highest in (ssl.TLSVersion.MAXIMUM_SUPPORTED, ssl.TLSVersion.TLSv1_3):
        highest = ssl.TLSVersion.TLSv1_2
    if lowest is ssl.TLSVersion.TLSv1_3:
        settings["min_tls"] = _VERSIONS[lowest]
    if highest is not ssl.TLSVersion.MAXIMUM_SUPPORTED:
        if highest not in _VERSIONS:
            raise TypeError(f"the SSLContext allows {highest.name} at most; haul has TLS 1.2 and 1.3")
        settings["max_tls"] = _VERSIONS[highest]
    return settings


def _refuse_other_settings(context: ssl.SSLContext) -> None:
    """Refuses settings that the engine does not have.

    :raises TypeError: the context has its own ciphers, or writes its keys to a file."""
    import os

    # `create_default_context` takes the file from this variable.
    if context.keylog_filename not in (None, os.environ.get("SSLKEYLOGFILE")):
        raise TypeError("haul does not write the keys of an SSLContext to its keylog_filename")
    known = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if [cipher["name"] for cipher in context.get_ciphers()] != [cipher["name"] for cipher in known.get_ciphers()]:
        raise TypeError("haul does not use the ciphers of an SSLContext (set_ciphers)")
