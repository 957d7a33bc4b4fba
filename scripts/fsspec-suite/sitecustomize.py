"""Loaded by each Python process of fsspec's tests: http and https URLs are read by haul.

The tests name classes of aiohttp, requests and fsspec's own file system. Here these names are those
of the classes by which haul does the same. Each process appends the number of its requests to the
file HAUL_FSSPEC_LOG."""

import atexit
import os
import sys

import aiohttp
import fsspec.implementations.http
import fsspec.implementations.http_sync
import haul
import haul._fsspec_files
import haul.fsspec
import requests

aiohttp.ClientResponseError = haul.HTTPError
aiohttp.client_exceptions.ClientError = haul.RequestException
requests.exceptions.HTTPError = haul.HTTPError
haul.HTTPError.status = property(lambda self: self.response.status_code)
fsspec.implementations.http.HTTPStreamFile = haul._fsspec_files.StreamFile
# The fixture of test_http_sync.py would put the file system for browsers in the place of haul's.
fsspec.implementations.http_sync.register = fsspec.implementations.http_sync.unregister = lambda: None
haul.fsspec.register()

sent = 0


def counted(send):
    def call(*args, **kwargs):
        global sent
        sent += 1
        return send(*args, **kwargs)

    return call


haul.Session.get = counted(haul.Session.get)
haul.AsyncSession.request = counted(haul.AsyncSession.request)


@atexit.register
def report():
    if "HAUL_FSSPEC_LOG" in os.environ:
        with open(os.environ["HAUL_FSSPEC_LOG"], "a") as log:
            print(sent, sys.argv[0], file=log)
