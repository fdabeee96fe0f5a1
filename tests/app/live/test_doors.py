"""What stands before every request: token, host, origin, size."""

import asyncio
import json

import pytest

from smoothlime.app.live.doors import LOOPBACK, Guards, new_token
from smoothlime.app.live.server import hosts_of

TOKEN = "s3cret-t0ken"


async def echo(scope, receive, send):
    """Says what path it was asked for, and how long the body was."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    said = {"path": scope["path"].removeprefix(scope["root_path"]), "size": size}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})


def ask(path, *, host="127.0.0.1:8000", headers=(), bodies=(b"",), hosts=LOOPBACK, largest=100):
    """Status, headers and body of an answer."""
    scope = {"type": "http", "path": path, "root_path": "",
             "headers": [(b"host", host.encode("latin-1")), *headers]}  # fmt: skip
    parts = [{"type": "http.request", "body": body, "more_body": True} for body in bodies[:-1]]
    parts.append({"type": "http.request", "body": bodies[-1], "more_body": False})
    sent = []

    async def receive():
        return parts.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(Guards(echo, TOKEN, hosts, largest)(scope, receive, send))
    body = b"".join(each.get("body", b"") for each in sent)
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(body)


def test_an_address_that_begins_with_the_token_is_let_through():
    for path in ("/", "/explain", "/rows/3"):
        status, headers, said = ask(f"/{TOKEN}{path}")
        assert (status, said) == (200, {"path": path, "size": 0})
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"referrer-policy"] == b"no-referrer"
        assert headers[b"x-content-type-options"] == b"nosniff"


@pytest.mark.parametrize("path", ["/", "/explain", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", "/ünı/", f"//{TOKEN}/", "/../"])
def test_a_wrong_token_is_refused(path):
    status, _, said = ask(path)
    assert status == 403
    assert "no valid token" in said["error"]
    assert TOKEN not in said["error"]


def test_the_slash_behind_the_token_is_asked_for():
    assert ask(f"/{TOKEN}")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::2]:8000"])
def test_a_foreign_host_is_refused_though_the_token_is_right(host):
    status, _, said = ask(f"/{TOKEN}/", host=host)
    assert status == 403
    assert "open the address that smoothlime printed" in said["error"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "LOCALHOST:8000", "[::1]:8000", "[::1]"])
def test_names_of_this_computer_are_let_through(host):
    assert ask(f"/{TOKEN}/", host=host)[0] == 200


def test_the_address_that_a_server_was_told_to_listen_on_is_its_name_too():
    assert hosts_of("10.0.0.7") == (*LOOPBACK, "10.0.0.7")
    assert hosts_of("fe80::1")[-1] == "[fe80::1]"
    assert hosts_of("127.0.0.1") == LOOPBACK
    assert hosts_of("0.0.0.0") == ()  # all of its addresses, whose names nobody can list


@pytest.mark.parametrize(
    ("origin", "status"),
    [(b"http://127.0.0.1:8000", 200), (b"https://evil.example", 403), (b"null", 403), (b"http://127.0.0.1:9", 403)],
)
def test_requests_that_pages_of_other_sites_send_are_refused(origin, status):
    assert ask(f"/{TOKEN}/explain", headers=[(b"origin", origin)])[0] == status


def test_a_body_that_is_too_long_is_refused_whether_or_not_it_says_so():
    assert ask(f"/{TOKEN}/", headers=[(b"content-length", b"101")])[0] == 413
    assert ask(f"/{TOKEN}/", headers=[(b"content-length", b"-1")])[0] == 413
    assert ask(f"/{TOKEN}/", bodies=(b"x" * 60, b"x" * 60))[0] == 413
    assert ask(f"/{TOKEN}/", bodies=(b"x" * 60, b"x" * 40))[2]["size"] == 100


def test_tokens_differ_and_need_no_escaping():
    tokens = {new_token() for _ in range(50)}
    assert len(tokens) == 50
    assert all(len(each) >= 32 and each.replace("-", "").replace("_", "").isalnum() for each in tokens)


def test_the_token_is_not_printed():
    assert TOKEN not in repr(Guards(echo, TOKEN))
