import pytest

from plait.outbound.faults import AnswerBroken, RequestInvalid, UrlRefused
from plait.outbound.requests import Request, make_request, redirected

SECRETS = {"Authorization": "Bearer s", "Cookie": "a=b", "X-Api-Key": "s", "Accept": "text/html"}


def get(url: str = "https://a.example/x") -> Request:
    return make_request("GET", url, SECRETS, None)


def post(url: str = "https://a.example/x", method: str = "POST") -> Request:
    return make_request(method, url, {**SECRETS, "Content-Type": "application/json"}, b"{}")


def test_a_request_says_who_we_are_and_what_we_can_unpack() -> None:
    assert make_request("GET", "http://a.example", None, None).headers == {
        "User-Agent": make_request("GET", "http://a.example", {}, None).headers["User-Agent"],
        "Accept-Encoding": "gzip, deflate",
    }
    own = make_request("GET", "http://a.example", {"user-agent": "me", "accept-encoding": "br"}, None)
    assert own.headers == {"user-agent": "me", "Accept-Encoding": "gzip, deflate"}


@pytest.mark.parametrize("method", ["", "get", "GET /", "CONNECT", "TRACE", "G\r\nET", "GET\n", "É"])
def test_a_method_that_we_do_not_send_is_refused(method: str) -> None:
    with pytest.raises(RequestInvalid):
        make_request(method, "http://a.example/", None, None)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "b.example"},
        {"hOsT": "b.example"},
        {"Content-Length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Proxy-Authorization": "x"},
        {"Expect": "100-continue"},
        {"Upgrade": "h2c"},
        {"X: y\r\nHost": "b"},
        {"X Y": "z"},
        {"": "z"},
        {"X": "y\r\nHost: b"},
        {"X": "y\x00"},
        {"X": "y\ud800"},
        {"X": "y" * 40_000},
    ],
)
def test_a_header_that_would_change_the_frame_of_the_request_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(RequestInvalid) as caught:
        make_request("GET", "http://a.example/", headers, None)
    assert len(str(caught.value)) < 200


def test_a_redirect_within_the_origin_keeps_everything() -> None:
    followed = redirected(get(), 302, "/y")
    assert followed.url.text == "https://a.example/y"
    assert followed.headers == get().headers


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize(
    "location",
    ["https://b.example/x", "http://a.example/x", "https://a.example:444/x", "//b.a.example/x"],
)
def test_a_redirect_to_another_origin_loses_all_that_may_be_a_credential(location: str) -> None:
    followed = redirected(get(), 302, location)
    assert set(followed.headers) == {"Accept", "User-Agent", "Accept-Encoding"}
    back = redirected(followed, 302, "https://a.example/x")
    assert back.headers == followed.headers


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_post_becomes_a_get_without_its_body(status: int) -> None:
    followed = redirected(post(), status, "https://b.example/")
    assert (followed.method, followed.body) == ("GET", None)
    assert "Content-Type" not in redirected(post(), status, "/y").headers


def test_other_methods_are_kept_unless_the_answer_is_to_be_fetched() -> None:
    assert redirected(post(method="PUT"), 302, "/y").method == "PUT"
    assert redirected(post(method="PUT"), 303, "/y").method == "GET"
    assert redirected(make_request("HEAD", "http://a.example/", None, None), 303, "/y").method == "HEAD"


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_is_sent_again_to_its_own_origin_only(status: int) -> None:
    again = redirected(post(), status, "/y")
    assert (again.method, again.body) == ("POST", b"{}")
    for location in ("https://b.example/", "http://a.example/", "https://a.example:444/"):
        with pytest.raises(AnswerBroken, match="another origin"):
            redirected(post(), status, location)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_who_talks_to_one_server_stays_there_and_keeps_the_method(status: int) -> None:
    again = redirected(post(), status, "/y", same_origin=True)
    assert (again.method, again.body, again.url.target) == ("POST", b"{}", "/y")
    for request in (post(), get()):
        with pytest.raises(AnswerBroken, match=r"another origin, b\.example; nothing is sent there"):
            redirected(request, status, "https://b.example/", same_origin=True)


def test_who_talks_to_one_server_does_not_make_a_get_of_a_post() -> None:
    with pytest.raises(AnswerBroken, match="303"):
        redirected(post(), 303, "/y", same_origin=True)


def test_a_redirect_that_is_no_url_is_refused() -> None:
    for location in ("http://", "https://u:p@b/", "\\\\b", "javascript:alert(1)"):
        with pytest.raises(UrlRefused, match="invalid URL in a redirect"):
            redirected(get(), 302, location)
