"""Traces in ERF, in named columns, of several interfaces and flows; and bytes changed at random."""

import gzip
import struct

import numpy as np
import pytest

from qmodels import Workload, read_trace
from qmodels.systems.packets.data_queueing import QueueTraffic
from qmodels.systems.spec.text.toml import from_toml, to_toml
from qmodels.systems.traffic.captures import flow_key
from qmodels.traffic import Recorded, Trace
from tests.qmodels.systems.test_trace import SECOND, block, section, write

IP = bytes([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 1, 1])
ETHERNET = bytes(12) + b"\x08\x00" + IP


def erf(second, wire, kind=2, *, port=0, extensions=0, body=None):
    """One record, built by the format's description."""
    if body is None:
        body = bytes(2) + ETHERNET if kind in (2, 11, 16, 20) else IP
    headers = b"".join(bytes([0x80 * (k < extensions - 1) | 3]) + bytes(7) for k in range(extensions))
    kind |= 0x80 if extensions else 0
    length = 16 + len(headers) + len(body)
    time = int(round(second * 2**32))
    return struct.pack("<QBB", time, kind, 4 | port) + struct.pack(">HHH", length, 0, wire) + headers + body


RECORDS = [erf(SECOND, 64), erf(SECOND + 0.5, 1518), erf(SECOND + 0.5, 70, 22), erf(SECOND + 2.25, 128, 2)]


def option(code, value):
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def interface(name=b"", resolution=6):
    options = (option(2, name) if name else b"") + option(9, bytes([resolution])) + bytes(4)
    return block(1, struct.pack("<HHI", 1, 0, 60) + options)


def packet(port, ticks, wire):
    return block(6, struct.pack("<IIIII", port, ticks >> 32, ticks & 0xFFFFFFFF, 38, wire) + ETHERNET)


# Two directions of a link with clocks of their own, the second behind the first in the file.
TWO = (
    section() + interface(b"eth0") + interface(b"eth1", 9)
    + packet(0, 1_000_000, 64) + packet(0, 1_000_003, 65) + packet(1, 1_000_001_500, 66)
    + packet(1, 1_000_009_000, 67) + packet(0, 1_000_006, 68)
)  # fmt: skip
PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 60, 1) + b"".join(
    struct.pack("<IIII", SECOND, k, 38, 64) + ETHERNET for k in range(4)
)
TEXT = "# made by hand\nno;us;proto;len\n1;10;udp;64\n2;11.5;udp;1500\n3;13;tcp;64\n"


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def put(tmp_path, request):
    """Write a file, compressed or not."""

    def made(content):
        content = content.encode() if isinstance(content, str) else content
        return write(tmp_path, gzip.compress(content) if request.param else content)

    return made


def test_erf_gives_times_wire_lengths_and_flows(put):
    skipped = erf(0, 0, 48, body=bytes(8)) + erf(SECOND, 0, 27, body=bytes(16))
    trace = read_trace(put(RECORDS[0] + skipped + b"".join(RECORDS[1:])))
    assert trace.times_ns.tolist() == [0, 500_000_000, 500_000_000, 2_250_000_000]
    assert trace.bytes.tolist() == [64, 1518, 70, 128]
    assert trace.flows.tolist() == [0, 0, 0, 0]  # one flow, whether the record begins with Ethernet or IP


def test_erf_times_keep_nanoseconds_and_extension_headers_are_stepped_over(tmp_path):
    times = [0, 7, 13, 1_000_000_001]
    data = b"".join(
        struct.pack("<Q", (SECOND << 32) + round(t * 2**32 / 1e9)) + erf(0, 64, extensions=k)[8:]
        for k, t in enumerate(times)
    )
    trace = read_trace(write(tmp_path, data), "erf")
    assert trace.times_ns.tolist() == times and set(trace.flows.tolist()) == {0}


def test_an_interface_of_several_is_chosen_by_number_or_name(put):
    path = put(TWO)
    for wanted in ("eth0", "0", 0):
        trace = read_trace(path, interface=wanted)
        assert trace.times_ns.tolist() == [0, 3000, 6000] and trace.bytes.tolist() == [64, 65, 68]
    assert read_trace(path, interface="eth1").times_ns.tolist() == [0, 7500]
    merged = read_trace(path, interface="all")
    assert merged.times_ns.tolist() == [0, 1500, 3000, 6000, 9000]
    assert merged.bytes.tolist() == [64, 66, 65, 68, 67]


NAMED = "0 (eth0) with 3 packets, 1 (eth1) with 2 packets; or all, merged by time"


@pytest.mark.parametrize("given", ["", "eth2", "2"])
def test_several_interfaces_are_named_where_none_is_chosen(tmp_path, given):
    path = write(tmp_path, TWO)
    with pytest.raises(ValueError) as caught:
        read_trace(path, interface=given)
    rule = "interface must be the number or name of one of"
    assert str(caught.value) == f"{path}: 5 packets read: {rule} {NAMED}; got {given or 'none'!r}"


def test_an_interface_without_a_name_is_not_meant_by_saying_nothing(tmp_path):
    path = write(tmp_path, TWO.replace(interface(b"eth0"), interface()))
    with pytest.raises(ValueError, match=r"one of 0 with 3 packets, 1 \(eth1\) with 2 packets"):
        read_trace(path)
    assert len(read_trace(path, interface=0)) == 3


def test_interfaces_of_erf_are_those_of_the_flags(tmp_path):
    path = write(tmp_path, erf(1, 64) + erf(2, 65, port=1) + erf(3, 66))
    assert read_trace(path, interface=0).bytes.tolist() == [64, 66]
    with pytest.raises(ValueError, match="one of 0 with 2 packets, 1 with 1 packets; or all"):
        read_trace(path)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (TEXT, "time=2,bytes=4,unit=us"),
        (TEXT.replace(";", "\t"), "bytes=4,unit=us,time=2"),
        (TEXT.replace(";", "  "), "time=2, bytes=4, unit=us"),
        ('"No.","Time","Info","Length"\n"1","0.01","a, b","64"\n2,0.0115,c,1500\n3,0.013,d,64\n',
         "time=2,bytes=4,unit=ms"),
        ("64 10000\n1500 11500\n64 13000\n", "time=2,bytes=1,unit=ns"),
        ("64 0.00001\n1500 0.0000115\n64 0.000013\n", "time=2,bytes=1"),
    ],
)  # fmt: skip
def test_columns_in_any_order_and_unit(put, text, columns):
    trace = read_trace(put(text), columns=columns)
    assert trace.times_ns.tolist() == [0, 1500, 3000] and trace.bytes.tolist() == [64, 1500, 64]
    assert trace.flows is None


def test_a_named_column_gives_flows(tmp_path):
    trace = read_trace(write(tmp_path, TEXT), columns="time=2,bytes=4,flow=3,unit=us")
    assert trace.flows.tolist() == [0, 0, 1]


RULE = (
    "columns must be like 'time=2,bytes=5,unit=us': the numbers of two columns from 1, if known flow=N, "
    "and the unit of the times, one of s, ms, us, ns (s if left out), got "
)


@pytest.mark.parametrize(
    "columns",
    ["time=1", "time=1,bytes=0", "time=1,bytes=1", "time=1,bytes=2,unit=min", "time=a,bytes=2", "2,5",
     "time=1,bytes=2,unit=us,unit=ms", "time=1,bytes=2,length=3", "time=²,bytes=1"],
)  # fmt: skip
def test_bad_columns_say_how_they_are_named(tmp_path, columns):
    with pytest.raises(ValueError) as caught:
        read_trace(write(tmp_path, TEXT), columns=columns)
    assert str(caught.value).endswith(f"{RULE}{columns!r}")


CUT = RECORDS[3][:-5]
COLUMNS = {"columns": "time=1,bytes=2,unit=ms"}


@pytest.mark.parametrize(
    ("content", "options"),
    [(TWO, {"interface": "eth1"}), (TEXT, {"columns": "time=2,bytes=4,unit=us"}), (PCAP, {})],
)
def test_how_a_trace_was_read_is_written_with_its_file(tmp_path, content, options):
    spec = Workload.from_trace(read_trace(write(tmp_path, content), **options))
    again = from_toml(to_toml(spec), Workload)
    assert isinstance(again.arrivals, Recorded) and again == spec
    assert again.arrivals.trace.read_as == spec.arrivals.trace.read_as
    arrivals = "[arrivals]\nkind = 'recorded'\ntrace = {file = 'x', interfaces = '1'}"
    with pytest.raises(ValueError, match="unknown key arrivals.trace.interfaces; did you mean 'interface'"):
        from_toml(arrivals, Workload)


@pytest.mark.parametrize(
    ("content", "options"),
    [(b"".join(RECORDS), {}), (TWO, {"interface": "all"}), (PCAP, {}),
     (TEXT.encode(), {"columns": "time=2,bytes=4,unit=us"}),
     (gzip.compress(TWO, mtime=0), {"interface": "all"})],
    ids=["erf", "pcapng", "pcap", "columns", "gzip"],
)  # fmt: skip
def test_changed_bytes_give_a_trace_or_one_line(tmp_path, content, options):
    rng = np.random.default_rng(17)
    ends = {Trace: 0, ValueError: 0}
    for _ in range(150):
        data = bytearray(content)
        for place in rng.integers(len(data), size=rng.integers(1, 6)):
            data[place] = rng.choice([0, 255, rng.integers(256)])
        path = write(tmp_path, bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data))
        try:
            ends[type(read_trace(path, **options))] += 1
        except ValueError as error:
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
            ends[ValueError] += 1
    assert min(ends.values()) > 0


MAC = bytes(range(12))


def ipv4(source=1, destination=2, protocol=6, ports=(1000, 80), fragment=0, options=0):
    head = struct.pack(
        ">BBHHHBBHII", 0x45 + options, 0, 40, 0, fragment, 64, protocol, 0, source, destination
    )
    return head + bytes(4 * options) + struct.pack(">HH", *ports)


def ethernet(payload, kind=0x0800, tags=b""):
    return MAC + tags + struct.pack(">H", kind) + payload


def ipv6(source=1, ports=(1000, 80)):
    return (
        bytes([0x60, 0, 0, 0, 0, 4, 17, 64])
        + bytes(15)
        + bytes([source])
        + bytes(16)
        + struct.pack(">HH", *ports)
    )


def test_the_same_five_numbers_are_the_same_flow():
    key = flow_key(ethernet(ipv4()), 1)
    vlan, mpls = struct.pack(">HH", 0x8100, 7), struct.pack(">II", 5 << 12, 6 << 12 | 1 << 8)
    same = [
        ethernet(ipv4(options=3)),
        ethernet(ipv4(), tags=vlan),
        ethernet(ipv4(), tags=vlan + vlan),
        ethernet(mpls + ipv4(), kind=0x8847),
        ethernet(ipv4(fragment=0x4000)),
    ]
    assert {flow_key(frame, 1) for frame in same} == {key} == {flow_key(ipv4(), 101)}
    others = [
        ipv4(source=9),
        ipv4(destination=9),
        ipv4(protocol=17),
        ipv4(ports=(1, 80)),
        ipv4(ports=(1000, 1)),
    ]
    assert len({key, *(flow_key(ethernet(other), 1) for other in others)}) == 6
    # Later fragments have no ports, and other protocols none at all.
    assert flow_key(ethernet(ipv4(fragment=5)), 1) == flow_key(ethernet(ipv4(fragment=9, ports=(3, 3))), 1)
    assert flow_key(ethernet(ipv4(protocol=1)), 1) == flow_key(ethernet(ipv4(protocol=1, ports=(3, 3))), 1)
    six = ethernet(ipv6(), kind=0x86DD)
    assert flow_key(six, 1) == flow_key(ipv6(), 12) != flow_key(ethernet(ipv6(source=2), kind=0x86DD), 1)


def test_what_is_not_ip():
    arp = ethernet(bytes(28), kind=0x0806)
    assert flow_key(arp, 1) == arp[:14]
    assert flow_key(ethernet(ipv4()), 113) is None
    # Cut anywhere, a frame still has a key.
    for frame in (ethernet(ipv4()), ethernet(struct.pack(">I", 1 << 12) + ipv4(), kind=0x8847)):
        assert all(flow_key(frame[:length], 1) is not None for length in range(len(frame)))


def pcap(path, frames, link=1):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
        for k, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 1, k, len(frame), 1500) + frame)
    return path


def test_captures_have_flows(tmp_path):
    frames = [ethernet(ipv4(source=s)) for s in (7, 3, 7, 5, 3)]
    assert read_trace(pcap(tmp_path / "a.pcap", frames)).flows.tolist() == [0, 1, 0, 2, 1]
    assert read_trace(pcap(tmp_path / "b.pcap", frames, link=113)).flows is None


def test_text_with_flows(tmp_path):
    summary = tmp_path / "summary"
    summary.write_text("0.0 1 2 80 99 10\n0.1 2 1 99 80 0\n0.2 1 2 80 99 5\n")
    assert read_trace(summary).flows.tolist() == [0, 1, 0]
    table = tmp_path / "table.csv"
    table.write_text("time,flow,bytes\n0,web,64\n1,mail,64\n2,web,1500\n")
    trace = read_trace(table)
    assert trace.flows.tolist() == [0, 1, 0] and trace.bytes.tolist() == [64, 64, 1500]
    table.write_text("time,bytes\n0,64\n1,64\n")
    assert read_trace(table).flows is None


def test_flows_are_part_of_a_trace():
    plain = {"times_ns": [0, 1, 5], "bytes": [64, 64, 64], "source": "by hand"}
    trace = Trace(**plain, flows=[4, 0, 4])
    assert trace != Trace(**plain) and trace == Trace(**plain, flows=np.array([4, 0, 4]))
    assert trace.window(1, 2).flows.tolist() == [0, 4]
    packets = QueueTraffic(arrivals=Recorded(trace=trace), queues=3).packets(np.random.default_rng(0), 3, 64)
    assert packets.queues.tolist() == [1, 0, 1]


def test_negative_times_are_refused(tmp_path):
    path = tmp_path / "early"
    path.write_text("-1.5 64\n0.0 64\n1.0 64\n")
    with pytest.raises(ValueError, match=r"early: 0 packets read: line 1: the time must be >= 0, got -1\.5$"):
        read_trace(path)
