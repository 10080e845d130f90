"""Programs as text: what is written is read back, and what is wrong is refused in a line that says where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import laws
from qmodels.steps import (
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Mark,
    Move,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
    parse,
    program_text,
)

TEXT = """
acquire mshrs                          # of the core
lookup llc reply_bytes=64 hit { hold 12 } miss {
    read dram 2 sequential
}
release mshrs; fork { visit crypto } { }
branch 0.75 { visit fast } 0.25 { hold exponential(mean=50) counted=false }
each { write "my dram" addresses=allocated; send "8" bytes=64 }
repeat 3 { visit crypto bytes=64 }
mark looked-up; move
allocate list segments { write dram addresses=allocated }
free list { read dram addresses=allocated }
"""
STEPS = (
    Acquire("mshrs"),
    Lookup(
        "llc",
        hit=(Hold(laws.Deterministic(mean=12)),),
        miss=(Read("dram", 2, "sequential"),),
        reply_bytes=64,
    ),
    Release("mshrs"),
    Fork(((Visit("crypto"),), ())),
    Branch(((Visit("fast"),), (Hold(laws.Exponential(mean=50), counted=False),)), (0.75, 0.25)),
    Each((Write("my dram", addresses="allocated"), Send("8", bytes=64))),
    Repeat((Visit("crypto", bytes=64),), 3),
    Mark("looked-up"),
    Move(),
    Allocate("list", "segments", steps=(Write("dram", addresses="allocated"),)),
    Free("list", steps=(Read("dram", addresses="allocated"),)),
)


def test_what_a_text_says():
    assert parse(TEXT) == STEPS


def test_how_steps_are_written():
    assert program_text(STEPS).splitlines() == [
        "acquire mshrs",
        "lookup llc reply_bytes=64 hit { hold 12.0 } miss { read dram 2 sequential }",
        "release mshrs",
        "fork { visit crypto } {}",
        "branch 0.75 { visit fast } 0.25 { hold exponential(mean=50.0) counted=false }",
        "each {",
        '    write "my dram" addresses=allocated',
        '    send "8" bytes=64',
        "}",
        "repeat 3 { visit crypto bytes=64 }",
        "mark looked-up",
        "move",
        "allocate list segments { write dram addresses=allocated }",
        "free list { read dram addresses=allocated }",
    ]


names = st.text(st.characters(exclude_categories=["C"], exclude_characters="."), min_size=1, max_size=8)
counts = st.one_of(st.integers(1, 65536), st.just("segments"))
payloads = st.integers(0, 2**20)
times = st.one_of(
    st.builds(laws.Deterministic, mean=st.floats(0, 1e9)),
    st.builds(laws.Exponential, mean=st.floats(1e-3, 1e9)),
    st.builds(laws.Erlang, mean=st.floats(0.1, 9), phases=st.integers(1, 9)),
    st.builds(laws.Empirical, values=st.lists(st.floats(0.1, 9), min_size=1, max_size=4)),
    st.just(laws.MAP(d0=((-1.0, 0.5), (0.25, -1.0)), d1=((0.5, 0.0), (0.25, 0.5)))),
)
addresses = st.sampled_from(["random", "sequential", "allocated"])
plain = st.one_of(
    st.builds(Visit, names, bytes=payloads, reply_bytes=payloads),
    st.builds(Send, names, bytes=payloads),
    st.builds(Read, names, counts, addresses),
    st.builds(Write, names, counts, addresses),
    st.builds(Allocate, names, counts),
    st.builds(Free, names),
    st.builds(Acquire, names, st.integers(1, 99)),
    st.builds(Release, names, st.integers(1, 99)),
    st.builds(Hold, times, counted=st.booleans()),
)


def holding(steps):
    """Return a strategy of steps that hold programs of others."""
    programs = st.lists(steps, max_size=3).map(tuple)
    some = st.lists(steps, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Lookup, names, private=programs, hit=programs, miss=programs, reply_bytes=payloads),
        st.builds(Fork, st.lists(programs, min_size=2, max_size=3)),
        st.builds(Each, some, counts),
        st.builds(Repeat, some, counts),
        st.builds(lambda a, b, p: Branch((a, b), (p, 1 - p)), programs, programs, st.floats(0, 1)),
    )


@given(st.lists(st.recursive(plain, holding, max_leaves=12), min_size=1, max_size=4).map(tuple))
def test_reading_what_was_written_gives_the_same_steps(program):
    text = program_text(program)
    assert parse(text) == program
    assert program_text(parse(text)) == text
    assert parse(text.replace("\n", "\n\n  # a remark; with { braces\n\t")) == program


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raed dram", "program line 1: step must be one of visit, .*, got 'raed'; did you mean 'read'"),
        ("read dram\nread", "program line 2: read.part is missing"),
        ("visit 3", "program line 1: visit.part must be the name of a part, got 3"),
        ("read dram 0", "program line 1: read.blocks must be a whole number from 1 to 65536, got 0"),
        ("read dram nan", "program line 1: read.blocks must be a whole number >= 1 or 'segments', got 'nan'"),
        (
            "read dram 1 random 2",
            "program line 1: read must have no further argument without a name, got '2'",
        ),
        ("read dram blcks=3", "unknown key program line 1: read.blcks; did you mean 'blocks'"),
        ("read dram 1 blocks=3", "program line 1: read.blocks must be given once, got it twice"),
        ("read dram blocks=", "program line 1 must have a value, got 'the end'"),
        ("read dram { visit a }", "program line 1: read must have no braces, got '{'"),
        ('read "dram', "program line 1 must be words, laws and braces, got '\"dram'"),
        ("}", "program line 1 must begin with a step, got '}'"),
        ('"dram"', "program line 1 must begin with a step, got '\"dram\"'"),
        ("fork { visit a", "program line 1 must close its braces, got 'the end'"),
        ("each 2 { visit a } visit b", "program line 1: each must have no further argument without a name"),
        ("fork { visit a }", "program line 1: fork.branches must be at least two, got "),
        ("fork { visit a } visit b", "program line 1: fork must have no further argument without a name"),
        ("each 0 { visit a }", "program line 1: each.count must be a whole number from 1 to 65536, got 0"),
        ("repeat -1 { visit a }", "program line 1: repeat.count must be a whole number from 1 to 65536"),
        ("repeat inf { visit a }", "program line 1: repeat.count must be a whole number >= 1 or 'segments'"),
        ("repeat 1e9 { visit a }", "program line 1: repeat.count must be a whole number from 1 to 65536"),
        ("repeat { visit a }", "program line 1: repeat.count is missing"),
        ("each 2 { }", "program line 1: each.steps must have a step, got "),
        ("each 2 { visit a } { visit b }", "program line 1: each.steps must be given once, got it twice"),
        (
            "lookup llc hut { visit a }",
            "program line 1: lookup must have further or private or hit or miss before",
        ),
        ("lookup llc hit {} hit {}", "program line 1: lookup.hit must be given once, got it twice"),
        ("branch { visit a } { }", "program line 1: branch must have a probability before its braces"),
        ("branch 0.5 { visit a } 0.4 { }", "program line 1: branch.probabilities must be .* sum up to 1"),
        ("branch 1.5 { visit a } -0.5 { }", r"program line 1: branch.probabilities must be in \[0, 1\]"),
        ("hold true", "program line 1: hold.time must be a law such as"),
        ("hold exponental(mean=3)", "program line 1: law must be one of .*; did you mean 'exponential'"),
        ("hold exponential(maen=3)", "unknown key program line 1: exponential.maen; did you mean 'mean'"),
        ("hold exponential(mean=)", "program line 1: exponential must have parameters such as"),
        ("hold 3 counted=perhaps", "program line 1: hold.counted must be true or false, got 'perhaps'"),
        ("repeat 2 {" * 40 + "visit a" + "}" * 40, "program line 1 must be at most 32 braces deep"),
    ],
)
def test_what_is_wrong_is_refused_in_a_line(text, message):
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        parse(text)
    assert "\n" not in str(raised.value)
