"""Programs as text: what is written is read back, and what is wrong is refused in a line that says where."""

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
