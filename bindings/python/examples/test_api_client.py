"""Tests of api_client.py without a server: pytest test_api_client.py

The fixture haul_mock is installed with haul. It answers the requests of all sessions."""

from __future__ import annotations

import json

import pytest
from api_client import ApiError, ItemsApi

import haul
from haul.testing import Mock, response

BASE = "https://api.example.com"


@pytest.fixture
def api() -> ItemsApi:
    return ItemsApi(BASE, "secret")


def test_items_of_all_pages_are_yielded(api: ItemsApi, haul_mock: Mock) -> None:
    haul_mock.get(f"{BASE}/items", response(json=[{"id": 1}], headers={"Link": f'<{BASE}/items?page=2>; rel="next"'}))
    haul_mock.get(f"{BASE}/items?page=2", response(json=[{"id": 2}]))
    assert [item["id"] for item in api.items()] == [1, 2]
    assert [call.headers["Authorization"] for call in haul_mock.calls] == ["Bearer secret"] * 2


def test_added_item_is_sent_as_json(api: ItemsApi, haul_mock: Mock) -> None:
    haul_mock.post(f"{BASE}/items", lambda request: response(201, json={"id": 7, **json.loads(request.body)}))
    assert api.add("x") == {"id": 7, "name": "x"}


def test_refusal_is_an_api_error(api: ItemsApi, haul_mock: Mock) -> None:
    haul_mock.get(f"{BASE}/items", response(403))
    with pytest.raises(ApiError, match="403 Forbidden"):
        list(api.items())


def test_failure_of_the_network_is_raised(api: ItemsApi, haul_mock: Mock) -> None:
    haul_mock.get(f"{BASE}/items", haul.ConnectTimeout("too late"))
    with pytest.raises(haul.ConnectTimeout):
        list(api.items())
