"""Does a URI come from this template?"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.routing.templates import Template

RFC_6570 = [
    # Section 1.2, levels 1 to 4, and section 3.2, wherever the variables have a value.
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{+hello}", "Hello%20World!"),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    ("X{#var}", "X#value"),
    ("X{#hello}", "X#Hello%20World!"),
    ("map?{x,y}", "map?1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path,x}/here", "/foo/bar,1024/here"),
    ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("X{.var}", "X.value"),
    ("X{.x,y}", "X.1024.768"),
    ("{/var}", "/value"),
    ("{/var,x}/here", "/value/1024/here"),
    ("{;x,y}", ";x=1024;y=768"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"),
    ("{?x,y}", "?x=1024&y=768"),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ("{var:3}", "val"),
    ("{list}", "red,green,blue"),
    ("{list*}", "red,green,blue"),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
    ("{+path:6}/here", "/foo/b/here"),
    ("{+list*}", "red,green,blue"),
    ("{#keys*}", "#semi=;,dot=.,comma=,"),
    ("X{.list*}", "X.red.green.blue"),
    ("{/var:1,var}", "/v/value"),
    ("{/list*}", "/red/green/blue"),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
    ("{?list*}", "?list=red&list=green&list=blue"),
    ("{&var:3}", "&var=val"),
    ("up{+path}{var}/here", "up/foo/barvalue/here"),
    ("O{+base}index", "Ohttp://example.com/home/index"),
    ("{var}{var}", "valuevalue"),
]


@pytest.mark.parametrize(("template", "uri"), RFC_6570)
def test_an_expansion_of_the_rfc_matches_its_template(template: str, uri: str) -> None:
    assert Template(template).matches(uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("file:///{path}", "file:///a/b"),
        ("file:///{path}", "file:///"),
        ("file:///{path}", "file://a"),
        ("file:///{path}", "http:///a"),
        ("notes://{id}/text", "notes://1/2/text"),
        ("notes://{id}/text", "notes:///text"),
        ("notes://{id}/text", "notes://1/texts"),
        ("notes://{id}/text", "notes://1/text/"),
        ("notes://{id}", "NOTES://1"),
        ("a{x}a", "a"),
        ("a{x}a", "aa"),
        ("ab{+x}ba", "aba"),
        ("{x}{y}", "a"),
        ("fixed", "fixed2"),
        ("fixed", "fixe"),
        ("{x}", ""),
    ],
)
def test_what_no_value_can_make_does_not_match(template: str, uri: str) -> None:
    assert not Template(template).matches(uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("file://{+directory}/{name}", "file:///home/me/notes.txt"),
        ("file://{+directory}/{name}.txt", "file:///home/me/notes.txt"),
        ("x://{a}-{b}.txt", "x://one-two-three.txt.txt"),
        ("x://{+a}/b/{c}/d", "x://1/b/2/3/b/4/d"),
        ("x://{a}a", "x://aaaa"),
        ("git://{ref}/{+path}", "git://main/src/plait/wire.py"),
        ("repo://{owner}/{repo}/contents{/path*}", "repo://me/it/contents"),
        ("x://{+a}", "x://"),
        ("x://é/{name}", "x://é/文"),
        ("fixed", "fixed"),
        ("not closed {x", "not closed {x"),
        ("", ""),
    ],
)
def test_what_some_value_makes_matches(template: str, uri: str) -> None:
    assert Template(template).matches(uri)


piece = st.sampled_from(["a", "b", "/", "ab", "a/", "", "{x}", "{y}", "{+z}", "{/z*}"])


@given(st.lists(piece, max_size=6).map("".join), st.text("ab/", max_size=10))
@settings(deadline=None, max_examples=500)
def test_it_agrees_with_a_regular_expression_that_may_take_for_ever(template: str, uri: str) -> None:
    source = re.sub(r"\\\{[xy]\\\}", "[^/]+", re.escape(template))
    source = re.sub(r"\\\{(\\\+|/)z(\\\*)?\\\}", ".*", source)
    assert Template(template).matches(uri) == (re.fullmatch(source, uri) is not None)


@pytest.mark.parametrize(
    "template",
    [
        "{+a}b" * 300 + "{c}x",
        "{a}b" * 300 + "{c}x",
        "{+a}" * 1000 + "x",
        "{a}" * 1000 + "x",
        "{+a}/{b}" * 99 + "x",
    ],
)
def test_a_hostile_template_and_a_long_uri_come_to_an_end(template: str) -> None:
    hostile = Template(template)
    for uri in ("b" * 100_000 + "x", "b" * 50_000 + "/" + "b" * 50_000 + "x", "/" * 100_000 + "x"):
        hostile.matches(uri)


def test_the_more_of_a_template_is_fixed_the_more_literal_it_is() -> None:
    assert Template("x://a/{b}").literal == 6
    assert Template("{a}").literal == 0
