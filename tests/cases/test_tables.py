"""Tables for people and for programs."""

import csv
import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cases.cli.answers import one_answer
from cases.study.details import Section
from cases.study.goals import default_processor, error_columns
from cases.tables import csv_text, heading, json_text, number, text_table, unit
from qmodels import solve
from qmodels.systems.spec.metrics import METRICS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("packet_latency", "ns"),
        ("packet_latency_low", "ns"),
        ("saturation_data_rate", "Gb/s"),
        ("link_width", "bytes"),
        ("channels", "1"),
        ("bottleneck", ""),
    ],
)
def test_units(name, expected):
    assert unit(name) == expected


def test_every_metric_with_a_unit_shows_it():
    assert all(heading(name).endswith(f"[{m.unit}]") for name, m in METRICS.items() if m.unit != "1")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.5678, "1235"),
        (99999.9, "100000"),
        (1e-5, "1e-05"),
        (np.int64(7), "7"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert number(value) == text


def test_text_table_aligns_numbers_right_and_words_left():
    lines = text_table(["a", "word"], [[1.5, "x"], [100.0, "longer"]], indent="").splitlines()
    assert lines == ["  a  word", "1.5  x", "100  longer"]


def test_csv_has_units_and_reads_back_in_full():
    text = csv_text(
        {"design": np.array([1, 2]), "cost": np.array([0.1 + 0.2, 2.0]), "bottleneck": ["a,b", "c"]}
    )
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["design", "cost [mm2]", "bottleneck"]
    assert float(rows[1][1]) == 0.1 + 0.2
    assert rows[1][2] == "a,b"


@dataclass
class Thing:
    wait: float
    names: tuple[str, ...]


def test_json_has_no_infinities():
    value = {"wait": np.inf, "array": np.array([1.0, np.nan]), 3: np.int64(4), "thing": Thing(np.inf, ("a",))}
    assert json.loads(json_text(value)) == {
        "wait": None,
        "array": [1.0, None],
        "3": 4,
        "thing": {"wait": None, "names": ["a"]},
    }


def test_a_section_is_a_heading_sentences_and_a_table():
    section = Section(title="a < b", lines=["x & y"], headings=["<h>"], rows=[[1.0], [float("inf")]])
    assert section.text().splitlines() == ["a < b", "  x & y", "  <h>", "    1", "  inf"]


def test_signed_means_show_once_an_answer_states_them():
    """An answer with ``error`` by metric, each with a ``bias``: in the CSV and the JSON."""
    result = solve(default_processor())
    biases = {name: 0.5 - k for k, name in enumerate(result.error)}
    stated = {name: replace(result.error[name], bias=bias, mean=1.0) for name, bias in biases.items()}
    told = replace(result, error=stated, evidence=None)
    table = one_answer(told).csv()
    for name, bias in biases.items():
        assert any(row.startswith(f"{name},") and f",1.0,{bias}," in row for row in table.splitlines())
    assert one_answer(told).data()["analytic"]["bias"] == biases
    assert error_columns(told)["bias: packet_latency"] == biases["packet_latency"]
