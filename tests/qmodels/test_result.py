import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from qmodels import Answer
from qmodels.queues import erlang_a, mm1, mmc, mmck
from qmodels.result import QueueResult
from qmodels.systems.spec.answer import Deferred, Later


def made(**changes):
    fields = {
        "model": "test",
        "arrival_rate": 0.5,
        "throughput": 0.4,
        "utilization": 0.4,
        "mean_waiting_time": 2.0,
        "mean_service_time": 1.0,
    }
    return QueueResult(**(fields | changes))


def test_derives_the_rest_by_littles_law():
    q = made()
    assert q.mean_response_time == 3.0
    assert q.mean_number_in_queue == pytest.approx(0.8, rel=1e-15)
    assert q.mean_number_in_system == pytest.approx(1.2, rel=1e-15)
    assert q.stable


def test_jobs_that_give_up_count_in_the_queue_but_are_not_served():
    q = made(abandonment_probability=0.2)
    assert q.mean_number_in_queue == pytest.approx(0.5 * 2.0, rel=1e-15)
    assert q.mean_response_time == pytest.approx(2.0 + 0.8, rel=1e-15)


def test_fields_take_one_shape_and_scalars_stay_scalars():
    q = made(mean_waiting_time=np.array([1.0, np.inf]), throughput=np.array([[0.1], [0.2], [0.3]]))
    assert q.mean_service_time.shape == q.utilization.shape == q.mean_number_in_system.shape == (3, 2)
    assert q.stable.tolist() == [[True, False]] * 3
    assert isinstance(made().mean_waiting_time, np.float64)
    assert np.ndim(mm1(arrival_rate=0.5, service_rate=1).mean_number_in_system) == 0


def test_a_class_without_arrivals_has_no_jobs_beyond_saturation():
    q = made(throughput=0.0, mean_waiting_time=np.inf)
    assert q.mean_number_in_queue == 0 and q.mean_number_in_system == 0


def test_is_frozen_and_compares_by_identity():
    q = made()
    with pytest.raises(FrozenInstanceError):
        q.model = "other"
    assert q != made() and q == q


def test_to_dict_and_to_pandas_leave_out_what_is_unknown():
    q = mmck(arrival_rate=[0.5, 1.5], service_rate=1, servers=1, capacity=3)
    assert "waiting_time_variance" not in q.to_dict()
    frame = q.to_pandas()
    assert list(frame.columns) == ["arrival_rate", "metric", "unit", "value"]
    blocked = frame[frame["metric"] == "blocking_probability"]["value"]
    assert blocked.tolist() == q.blocking_probability.tolist()
    one = mm1(arrival_rate=0.5, service_rate=1)
    assert list(one.to_pandas()["metric"]) == list(one.metrics)


def test_repr_and_html_show_model_units_and_range():
    text = repr(mmc(arrival_rate=[0.5, 3.0], service_rate=1, servers=2))
    assert text.startswith("M/M/c, 2 points")
    assert "mean_waiting_time" in text and " inf " in text and "1 of 2 stable" in text
    single = repr(mm1(arrival_rate=0.5, service_rate=1))
    assert single.splitlines()[0] == "M/M/1" and "stable" in single
    html = mm1(arrival_rate=0.5, service_rate=1)._repr_html_()
    assert html.startswith("<table><caption>M/M/1</caption>") and "<td>jobs/time</td>" in html


def test_survives_pickling_with_its_distributions():
    for q in (
        mmc(arrival_rate=0.9, service_rate=0.5, servers=2),
        mmck(arrival_rate=0.9, service_rate=0.5, servers=2, capacity=5),
        erlang_a(arrival_rate=2.0, service_rate=0.5, servers=2, patience_rate=0.1),
    ):
        again = pickle.loads(pickle.dumps(q))
        assert again.mean_waiting_time == q.mean_waiting_time
        assert again.waiting_time_quantile(0.9) == q.waiting_time_quantile(0.9)


def test_the_picture_of_a_sweep_has_a_line_for_each_of_the_others():
    q = mmc(arrival_rate=np.linspace(0.1, 1.9, 7), service_rate=1, servers=[[2], [3]])
    axes = q.plot().axes[0]
    assert axes.get_xlabel() == "arrival_rate" and axes.get_ylabel() == "mean response time [time]"
    assert [line.get_ydata().tolist() for line in axes.lines] == q.mean_response_time.tolist()


def test_what_is_needed_later_is_computed_once():
    asked = []
    squares = Later(("one", "two"), lambda name: asked.append(name) or len(asked) ** 2)
    assert squares["two"] == squares["two"] == 1 and asked == ["two"] and "one" in squares
    assert dict(squares) == {"one": 4, "two": 1} == dict(squares) and len(squares) == 2
    with pytest.raises(KeyError, match="three"):
        squares["three"]
    late = Answer(spec=None, metrics={"throughput": 1.0}, stable=Deferred(lambda: asked.append(3) or False))
    assert "stable" in dir(late) and asked == ["two", "one"]
    assert late.stable is late.stable is False and asked == ["two", "one", 3]
    assert pickle.loads(pickle.dumps(late)).stable is replace(late, model="x").stable is False
