"""Guards: hosts, tokens and sizes, for all routes alike, those of others too."""

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from smoothlime.app.api import Limits, create_app
from smoothlime.app.api.guards import is_loopback

TOKEN = "0123456789abcdef"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}


async def page(request):
    return PlainTextResponse("a page")


async def echo(request):
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
def client(models):
    more = [Route("/page", page), Route("/open", page), Route("/echo", echo, methods=["POST"])]
    app = create_app(
        models, limits=Limits(size=1000), token=TOKEN, hosts=["explain.example"], routes=more, open_paths=["/open"]
    )
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:9", "10.1.2.3", "explain.example", "Explain.Example.:80"],
)
def test_known_hosts_and_addresses_are_ours(client, host):
    assert client.get("/v2/health/live", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example", "explain"])
def test_other_hosts_are_refused(client, host):
    answer = client.get("/v2/health/live", headers={"Host": host})
    assert answer.status_code == 421
    assert "the Host header names none of this service's hosts" in answer.json()["error"]


@pytest.mark.parametrize(
    "given", [None, "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer é"]
)
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/line", "/metrics", "/openapi.json", "/page", "/nothing"])
def test_without_the_token_nothing_is_said(client, path, given):
    headers = {} if given is None else {"Authorization": given.encode()}
    answer = client.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {"error": "send the token of this service: Authorization: Bearer ..."}


def test_with_the_token_it_is(client):
    assert client.get("/v1/models", headers=WITH_TOKEN).status_code == 200
    assert client.get("/page", headers={"Authorization": f"bearer {TOKEN}"}).text == "a page"
    answer = client.post("/v1/models/line:explain", json={"instances": [[1, 2, 3]]}, headers=WITH_TOKEN)
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/open"])
def test_open_paths_need_none(client, path):
    assert client.get(path).status_code == 200


def test_bodies_are_counted_whatever_their_header_says(client):
    assert client.post("/echo", content=b"x" * 1000, headers=WITH_TOKEN).text == "1000"
    assert client.post("/echo", content=b"x" * 1001, headers=WITH_TOKEN).status_code == 413

    def parts():
        for _ in range(11):
            yield b"x" * 100

    answer = client.post("/echo", content=parts(), headers=WITH_TOKEN)  # of a length that nobody says before
    assert answer.status_code == 413
    assert "the body is larger than 1000 bytes" in answer.json()["error"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is_known(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.org", "::"])
def test_all_else_is_no_loopback(host):
    assert not is_loopback(host)
