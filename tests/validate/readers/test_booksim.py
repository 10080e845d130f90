"""Hand-written extracts in the form that BookSim 2.0 prints (checked against runs of a build of it)."""

import math

import numpy as np
import pytest

from validate import read_booksim

CONFIG = """BEGIN Configuration File: mesh
// a comment with rate = 7;
topology = mesh;
k = 4;  n = 2;

traffic = {traffic};
packet_size = {size};

END Configuration File: mesh
OVERRIDE Parameter: injection_rate={rate}
"""
SAMPLE = """Class {number}:
Packet latency average = {latency}
\tminimum = 10
\tmaximum = 1713
Network latency average = 93.4418
\tminimum = 10
\tmaximum = 546
Slowest packet = 12010
Flit latency average = 86.0815
\tminimum = 7
\tmaximum = 542
Slowest flit = 52635
Fragmentation average = 7.67809
\tminimum = 0
\tmaximum = 55
Injected packet rate average = 0.182406
\tminimum = 0.129 (at node 1)
\tmaximum = 0.2155 (at node 7)
Accepted flit rate average= 0.733062
\tminimum = 0.6385 (at node 0)
\tmaximum = 0.8 (at node 14)
Injected packet length average = 3.99931
Total in-flight flits = 1059 (0 measured)
latency change    = 0.617172
throughput change = 0.00748146
"""
OVERALL = """====== Traffic class {number} ======
Packet latency average = {latency} (2 samples)
\tminimum = 10 (2 samples)
\tmaximum = 42.5 (2 samples)
Network latency average = 22.744 (2 samples)
\tminimum = 10 (2 samples)
\tmaximum = 42 (2 samples)
Accepted packet rate average = 0.0121042 (2 samples)
\tminimum = 0.00983333 (2 samples)
\tmaximum = 1.43e-02 (2 samples)
Accepted flit rate average = 0.0484167 (2 samples)
\tminimum = 0.0393333 (2 samples)
\tmaximum = 0.0573333 (2 samples)
Injected packet size average = -nan (2 samples)
Accepted packet size average = 4 (2 samples)
Hops average = 3.49224 (2 samples)
"""
HEAD = "====== Overall Traffic Statistics ======\n"


def config(rate="0.05", traffic="uniform", size="4"):
    text = CONFIG
    for name, value in (("rate", rate), ("traffic", traffic), ("size", size)):
        text = text.replace(f"{{{name}}}", value)
    return text


def stable(latency=22.819, **settings):
    sample = SAMPLE.format(number=0, latency=99.0)
    block = OVERALL.format(number=0, latency=latency)
    body = f"Draining remaining packets ...\nTime taken is 12038 cycles\n{HEAD}{block}"
    return config(**settings) + sample + body + "Total run time 0.142664\n"


def unstable(rate="0.9"):
    return (
        config(rate)
        + SAMPLE.format(number=0, latency=340.0)
        + SAMPLE.format(number=0, latency=882.397)
        + "Average latency for class 0 exceeded 500 cycles. Aborting simulation.\n"
        + "Too many sample periods needed to converge\nSimulation unstable, ending ...\nTotal run time 0.38\n"
    )


def test_a_sweep_of_logs(tmp_path) -> None:
    for rate, latency in (("0.2", 23.89), ("0.05", 22.819)):
        (tmp_path / f"mesh_{rate}.log").write_text(stable(latency, rate=rate))
    (tmp_path / "mesh_0.9.log").write_text(unstable())
    runs = read_booksim(f"{tmp_path}/*.log")
    np.testing.assert_array_equal(runs["packet_latency"], [22.819, 23.89, math.inf])
    np.testing.assert_array_equal(runs.setting("injection_rate"), [0.05, 0.2, 0.9])
    assert runs.varied == ("injection_rate",)
    assert [run.stable for run in runs] == [True, True, False]
    assert runs.runs[0].settings == {
        "topology": "mesh",
        "k": 4,
        "n": 2,
        "traffic": "uniform",
        "packet_size": 4,
        "injection_rate": 0.05,
        "traffic_class": 0,
    }
    assert runs.units["packet_latency"] == "cycles" and runs.units["accepted_flit_rate"] == "flits/cycle/node"


def test_the_overall_block_counts_and_nan_is_left_out(tmp_path) -> None:
    (tmp_path / "a.log").write_text(stable())
    metrics = {name: value.best for name, value in read_booksim(tmp_path / "a.log").runs[0].metrics.items()}
    assert metrics == {
        "packet_latency": 22.819,
        "packet_latency_minimum": 10,
        "packet_latency_maximum": 42.5,
        "network_latency": 22.744,
        "network_latency_minimum": 10,
        "network_latency_maximum": 42,
        "accepted_packet_rate": 0.0121042,
        "accepted_packet_rate_minimum": 0.00983333,
        "accepted_packet_rate_maximum": 0.0143,
        "accepted_flit_rate": 0.0484167,
        "accepted_flit_rate_minimum": 0.0393333,
        "accepted_flit_rate_maximum": 0.0573333,
        "accepted_packet_flits": 4,
        "hops": 3.49224,
    }


def test_an_unstable_run_has_the_last_sample_and_no_latency(tmp_path) -> None:
    (tmp_path / "a.log").write_text(unstable())
    run = read_booksim(tmp_path / "a.log").runs[0]
    assert run.metrics["packet_latency"].best == run.metrics["packet_latency_maximum"].best == math.inf
    assert run.metrics["packet_latency_minimum"].best == 10
    assert (
        run.metrics["network_latency"].best == 93.4418 and run.metrics["accepted_flit_rate"].best == 0.733062
    )
    assert run.metrics["injected_packet_flits"].best == 3.99931 and "hops" not in run.metrics
    assert run.note.startswith("Average latency for class 0 exceeded 500 cycles")


def test_traffic_classes_have_their_own_settings(tmp_path) -> None:
    text = config("{0.1,0.05}", "{uniform,hotspot({0,5})}", "{1,{4,5}}") + HEAD
    text += "".join(OVERALL.format(number=c, latency=20 + c) for c in (0, 1)) + "Total run time 0.1\n"
    (tmp_path / "two.log").write_text(text)
    runs = read_booksim(tmp_path / "two.log")
    np.testing.assert_array_equal(runs["packet_latency"], [20, 21])
    first, second = (run.settings for run in runs)
    assert (first["injection_rate"], first["packet_size"], first["traffic"]) == (0.1, 1, "uniform")
    assert (second["injection_rate"], second["packet_size"]) == (0.05, "{4,5}")
    assert second["traffic"] == "hotspot({0,5})"
    assert len(runs.where(traffic_class=1)) == 1


def test_refuses_binary(tmp_path) -> None:
    (tmp_path / "a.log").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="finished BookSim 2 run: it is not text"):
        read_booksim(tmp_path / "a.log")
