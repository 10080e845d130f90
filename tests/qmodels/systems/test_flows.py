"""Which packets of a recorded trace belong together."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from qmodels import read_trace
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
from qmodels.systems.traffic.readers.captures import flow_key
from qmodels.traffic import Recorded, Trace

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
