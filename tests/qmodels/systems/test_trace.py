"""Traces and the files they are read from; every file is written here, byte by byte."""

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from qmodels import read_trace
from qmodels.traffic import Trace

TRACES = Path(os.environ.get("QMODELS_TRACES", Path(__file__).parents[4] / "shared" / "traces"))

SECOND = 1_700_000_000  # a time of day, too large for nanoseconds in a float
PACKETS = [(SECOND, 0, 64), (SECOND, 1500, 1514), (SECOND, 1500, 70), (SECOND + 2, 250, 1514)]
NS = np.array([0, 1_500_000, 1_500_000, 2_000_250_000])  # of PACKETS, fractions in microseconds
CAPTURED = 60  # bytes kept of each packet


def pcap(
    packets: list[tuple[int, int, int]] = PACKETS, *, order: str = "<", magic: int = 0xA1B2C3D4
) -> bytes:
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, CAPTURED, 1)
    for second, fraction, wire in packets:
        kept = min(wire, CAPTURED)
        data += struct.pack(order + "IIII", second, fraction, kept, wire) + bytes(kept)
    return data


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: str = "<", resolution: int | None = None) -> bytes:
    option = b"" if resolution is None else struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    return block(1, struct.pack(order + "HHI", 1, 0, CAPTURED) + option, order)


def enhanced(ticks: int, wire: int, order: str = "<", interface: int = 0) -> bytes:
    kept = min(wire, CAPTURED)
    head = struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, kept, wire)
    return block(6, head + bytes(kept), order)


def pcapng(order: str = "<") -> bytes:
    blocks = [enhanced(s * 1_000_000 + us, wire, order) for s, us, wire in PACKETS]
    return section(order) + interface(order) + b"".join(blocks)


def write(folder: Path, content: bytes | str, name: str = "packets") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def assert_is_packets(trace: Trace, path: Path) -> None:
    assert_array_equal(trace.times_ns, NS)
    assert trace.bytes.tolist() == [64, 1514, 70, 1514]
    assert trace.source == str(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_gives_times_and_wire_lengths(tmp_path: Path, order: str) -> None:
    path = write(tmp_path, pcap(order=order))
    assert_is_packets(read_trace(path), path)
    assert_is_packets(read_trace(str(path), format="pcap"), path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_with_nanoseconds(tmp_path: Path, order: str) -> None:
    fine = [(s, fraction * 1000 + 1, wire) for s, fraction, wire in PACKETS]
    trace = read_trace(write(tmp_path, pcap(fine, order=order, magic=0xA1B23C4D)))
    assert_array_equal(trace.times_ns, NS)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_gives_times_and_wire_lengths(tmp_path: Path, order: str) -> None:
    path = write(tmp_path, pcapng(order) + block(5, bytes(12), order))  # and statistics
    assert_is_packets(read_trace(path), path)


def test_pcapng_clocks_differ_by_interface(tmp_path: Path) -> None:
    clocks = interface(resolution=9) + interface(resolution=0x80 | 10) + interface()
    packets = [
        enhanced(SECOND * 10**9 + 7, 64),
        enhanced(SECOND * 1024 + 512, 65, interface=1),
        enhanced((SECOND + 1) * 1_000_000, 66, interface=2),
    ]
    path = write(tmp_path, section() + clocks + b"".join(packets))
    trace = read_trace(path, interface="all")
    assert trace.times_ns.tolist() == [0, 499_999_993, 999_999_993]
    assert trace.bytes.tolist() == [64, 65, 66]
    with pytest.raises(ValueError) as caught:
        read_trace(path)
    assert str(caught.value) == (
        f"{path}: 3 packets read: interface must be the number or name of one of 0 with 1 packets, "
        "1 with 1 packets, 2 with 1 packets; or all, merged by time; got 'none'"
    )


def test_pcapng_of_two_sections_with_clocks_and_byte_orders_of_their_own(tmp_path: Path) -> None:
    second = section(">") + interface(">", resolution=9)
    late = [enhanced((SECOND + 2) * 10**9 + k, 65, ">") for k in (250_000, 250_007)]
    trace = read_trace(write(tmp_path, pcapng() + second + b"".join(late)))
    assert trace.times_ns.tolist() == [*NS, NS[-1], NS[-1] + 7]
    assert trace.bytes.tolist() == [64, 1514, 70, 1514, 65, 65]


@pytest.mark.parametrize("content", [pcap(), pcapng()])
def test_a_compressed_capture_is_read_through_gzip(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, gzip.compress(content))
    assert_is_packets(read_trace(path), path)


def test_compressed_text(tmp_path: Path) -> None:
    for name, text in (("columns", b"0.5 64\n0.5000001 65\n"), ("csv", b"time,bytes\n0,64\n1e-7,65\n")):
        trace = read_trace(write(tmp_path, gzip.compress(text), name))
        assert (trace.times_ns.tolist(), trace.bytes.tolist()) == ([0, 100], [64, 65])


def test_two_columns_as_in_the_bellcore_traces(tmp_path: Path) -> None:
    path = write(tmp_path, "    0.001340  1090 \n    0.001508   174 \n\n# a remark\n    0.004176   162 \n")
    trace = read_trace(path)
    assert_allclose(trace.times_ns, [0, 168_000, 2_836_000], rtol=1e-15)
    assert trace.bytes.tolist() == [1090, 174, 162]


def test_summary_adds_headers_and_understands_the_first_time(tmp_path: Path) -> None:
    # The documentation's own example: times 187.2, 188.9 and 191.3 are written 187.2, 1.9 and 4.3.
    path = write(tmp_path, "187.2 2 1 2436 23 1\n1.9 1 2 23 2436 0\n4.3 2 1 2436 23 512\n")
    trace = read_trace(path, format="tcpdump-summary")
    assert trace.times_ns.tolist() == [0, 1_700_000_000, 4_100_000_000]
    assert trace.bytes.tolist() == [41, 40, 552]


def test_a_piece_of_a_summary_keeps_its_times(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "7.25 2 1 2436 23 1\n9.5 1 2 23 2436 0\n"))
    assert trace.times_ns.tolist() == [0, 2_250_000_000]


def test_csv_keeps_fractions_of_absolute_nanoseconds(tmp_path: Path) -> None:
    text = f"Time, Bytes\n{SECOND}.0000000001,64\n{SECOND}.0000000016, 1500\n{SECOND}.000000003,64\r\n"
    trace = read_trace(write(tmp_path, text, "misleading.pcap"))
    assert_allclose(trace.times_ns, [0, 1.5, 2.9], rtol=1e-15)


@given(
    gaps=st.lists(st.integers(0, 10**12), min_size=1, max_size=40).filter(any),
    start=st.integers(0, 2 * 10**18),
    data=st.data(),
)
def test_laws_of_a_trace(gaps: list[int], start: int, data: st.DataObject) -> None:
    n = len(gaps) + 1
    sizes = data.draw(st.lists(st.integers(1, 65535), min_size=n, max_size=n))
    times = np.cumsum([start, *gaps])
    trace = Trace(times_ns=times, bytes=np.array(sizes), source="a")
    assert trace.times_ns[0] == 0 and np.array_equal(np.diff(times), np.rint(np.diff(trace.times_ns)))
    assert_allclose(trace.packet_rate, 1 / np.mean(gaps), rtol=1e-12)
    assert_allclose(trace.mean_gbps, 8 * np.mean(sizes) / np.mean(gaps), rtol=1e-12)
    assert_allclose(trace.gap_scv, np.var(np.array(gaps) / np.mean(gaps)), rtol=1e-9, atol=1e-12)

    shifted = Trace(times_ns=times - start, bytes=np.array(sizes), source="b")
    assert shifted == trace and hash(shifted) == hash(trace) and shifted.digest == trace.digest
    sizes[0] = sizes[0] % 65535 + 1
    assert Trace(times_ns=times, bytes=np.array(sizes), source="a") != trace


def test_the_digest_is_the_same_everywhere() -> None:
    trace = Trace(times_ns=np.array([5, 105]), bytes=np.array([64, 128]), source="by hand")
    # sha256sum of two doubles (0.0, 100.0) and two 64-bit integers (64, 128), little-endian.
    assert trace.digest == "98c6b5c9d0c0a0b67e7e85858dc7a857567dabb6341319f5d84a8322fff332c7"


def test_a_trace_cannot_be_changed_and_does_not_follow_its_input() -> None:
    times, sizes = np.array([0.0, 5.0]), np.array([64, 64])
    trace = Trace(times_ns=times, bytes=sizes, source="by hand")
    times[1] = sizes[1] = 99
    assert trace.times_ns.tolist() == [0, 5] and trace.bytes.tolist() == [64, 64]
    for array in (trace.times_ns, trace.bytes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert repr(trace) == "Trace(2 packets, 5e-09 s, source='by hand')"


def test_window_is_a_run_of_packets() -> None:
    trace = Trace(times_ns=np.array([0, 5, 9, 20]), bytes=np.array([1, 2, 3, 4]), source="x")
    part = trace.window(1, 2)
    assert part.times_ns.tolist() == [0, 4] and part.bytes.tolist() == [2, 3]
    assert part.source == "packets 1 to 2 of x"
    assert trace.window(0, 4) == trace
    with pytest.raises(ValueError, match=r"count must be a whole number from 2 to 3, got 4\.0"):
        trace.window(1, 4)
    with pytest.raises(ValueError, match=r"start must be a whole number from 0 to 2, got 3\.0"):
        trace.window(3, 2)


FORMATS = "pcap, pcapng, erf, time-bytes, tcpdump-summary, csv"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(8)
NO_INTERFACE = section() + interface() + enhanced(1, 64) + enhanced(2, 64) + enhanced(3, 64, interface=3)


def test_a_file_must_be_what_it_is_said_to_be(tmp_path: Path) -> None:
    path = write(tmp_path, pcapng(), "capture.pcap")
    assert_is_packets(read_trace(path), path)
    with pytest.raises(ValueError, match=r"capture\.pcap: 0 packets read: not pcap, it holds pcapng$"):
        read_trace(path, format="pcap")
    with pytest.raises(ValueError, match=r"format must be one of .*, got 'pcpa'; did you mean 'pcap'\?"):
        read_trace(path, format="pcpa")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"absent\.pcap: cannot be read: No such file or directory$"):
        read_trace(tmp_path / "absent.pcap")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)


@given(keep=st.integers(0, len(pcapng()) - 1), content=st.sampled_from([pcap(), pcapng()]))
def test_a_capture_cut_anywhere_is_whole_packets_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, keep: int, content: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("cut"), content[:keep])
    try:
        trace = read_trace(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert trace.bytes.tolist() == [64, 1514, 70, 1514][: len(trace)]


needs: Callable[[str], pytest.MarkDecorator] = lambda name: pytest.mark.skipif(  # noqa: E731
    not (TRACES / name).is_file(), reason="the real traces are not here"
)


@needs("BC-pAug89-100k.TL")
def test_bellcore_trace() -> None:
    # Facts of the published trace: its first 100,001 packets.
    trace = read_trace(TRACES / "BC-pAug89-100k.TL")
    assert len(trace) == 100_001
    assert trace.bytes.min() == 64 and trace.bytes.max() == 1518
    assert trace.bytes.mean() == pytest.approx(464, abs=0.5)
    assert trace.bytes.var() / trace.bytes.mean() ** 2 == pytest.approx(1.04, abs=0.005)
    assert trace.gap_scv == pytest.approx(3.06, abs=0.005)
    assert trace.times_ns[-1] / 1e9 == pytest.approx(252.1, abs=0.05)


@needs("libtrace-ip-in-mpls.pcap")
def test_capture_that_kept_only_the_head_of_packets() -> None:
    trace = read_trace(TRACES / "libtrace-ip-in-mpls.pcap")
    assert len(trace) == 10_507
    assert trace.times_ns[-1] / 1e9 == pytest.approx(25.5, abs=0.05)
    sizes, counts = np.unique(trace.bytes, return_counts=True)
    assert set(sizes[np.argsort(counts)[-2:]].tolist()) == {70, 1514}
