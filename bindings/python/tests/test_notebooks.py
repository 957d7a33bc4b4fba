"""HTML of responses and results."""

from __future__ import annotations

from typing import Any

import haul
from haul.testing import response


def test_response_is_shown_as_html() -> None:
    shown = response(404, "<b>x</b>", headers={"X-Own": "<i>"}, url="http://h/?a&b")._repr_html_()
    assert "<strong>404 Not Found http://h/?a&amp;b</strong>" in shown
    assert "<tr><th>X-Own</th><td>&lt;i&gt;</td></tr>" in shown and "<pre>&lt;b&gt;x&lt;/b&gt;</pre>" in shown
    assert "(5 bytes)" in response(content=b"\0\1\2\3\4")._repr_html_()
    assert "… (5000 bytes)" in response(content="x" * 5000)._repr_html_()


def test_unread_body_is_not_read_for_html(pages: Any) -> None:
    with haul.Session().stream("GET", f"{pages.url}/bytes/300000") as streamed:
        assert "(the body is not read yet)" in streamed._repr_html_()
        assert len(streamed.content) == 300000


def test_results_are_shown_as_a_table(pages: Any) -> None:
    results = haul.ResultList(haul.fetch_many([f"{pages.url}/a&b", "http://127.0.0.1:1/"]))
    shown = results._repr_html_()
    assert shown.count("<tr>") == 3 and f"<td>{pages.url}/a&amp;b</td><td>200</td><td>9</td>" in shown
    assert "<td>http://127.0.0.1:1/</td><td>ConnectionError</td>" in shown
    assert results[0]._repr_html_().count("<tr>") == 2
    many = haul.ResultList([results[0]] * 150)._repr_html_()
    assert many.count("<tr>") == 101 and "<p>50 more</p>" in many
