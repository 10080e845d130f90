"""The errors that the docstrings state, against exact chains of phases."""

import numpy as np
import pytest

from qmodels.laws import Erlang as ErlangLaw
from qmodels.queues import (
    gg1_kingman,
    gg1_klb,
    gg1_lower_bound,
    gg1_marchal,
    gg1_upper_bound,
    ggc_allen_cunneen,
    ggc_kimura,
    ggc_whitt,
    gmc,
    mek1,
    mm1,
    mmc,
)

SCVS = (0.25, 0.5, 1.0, 2.0, 4.0)


@pytest.fixture(scope="module")
def grid(ph_queue):
    """Utilization, SCVs, servers and the exact mean wait, service mean 1."""

    def table(servers, utilizations, service_scvs):
        return np.array(
            [
                (
                    rho,
                    ca,
                    cs,
                    c,
                    ph_queue(arrival_rate=rho * c, arrival_scv=ca, service_scv=cs, servers=c),
                )
                for c in servers
                for rho in utilizations
                for ca in SCVS
                for cs in service_scvs
            ]
        ).T

    return table


def test_the_oracle_agrees_with_exact_models(ph_queue):
    wait = ph_queue(arrival_rate=0.8, arrival_scv=1, service_scv=1)
    assert wait == pytest.approx(float(mm1(arrival_rate=0.8, service_rate=1).mean_waiting_time), rel=1e-12)
    wait = ph_queue(arrival_rate=2.4, arrival_scv=1, service_scv=1, servers=3)
    exact = mmc(arrival_rate=2.4, service_rate=1, servers=3).mean_waiting_time
    assert wait == pytest.approx(float(exact), rel=1e-12)
    wait = ph_queue(arrival_rate=0.8, arrival_scv=1, service_scv=0.25)
    exact = mek1(arrival_rate=0.8, service_rate=1, phases=4).mean_waiting_time
    assert wait == pytest.approx(float(exact), rel=1e-12)
    wait = ph_queue(arrival_rate=3.2, arrival_scv=1 / 3, service_scv=1, servers=4)
    exact = gmc(arrival=ErlangLaw(mean=1 / 3.2, phases=3), service_rate=1.0, servers=4).mean_waiting_time
    assert wait == pytest.approx(float(exact), rel=1e-12)


def errors(model, table, **more):
    rho, ca, cs, c, exact = table
    q = model(arrival_rate=rho * c, service_rate=1, arrival_scv=ca, service_scv=cs, **more)
    return np.abs(q.mean_waiting_time / exact - 1), np.abs(q.mean_waiting_time - exact) / (1 + exact)


def test_one_server(grid):
    table = grid([1], [0.3, 0.5, 0.7, 0.9, 0.95], SCVS)
    busy = table[0] >= 0.7
    for model, mean, largest, ever in (
        (gg1_kingman, 0.035, 0.35, 2.9),
        (gg1_klb, 0.02, 0.07, 0.33),
        (gg1_marchal, 0.045, 0.28, 1.6),
    ):
        error, of_response = errors(model, table)
        assert error[busy].mean() < mean and error[busy].max() < largest and error.max() < ever
        if model is gg1_klb:
            assert of_response.max() < 0.07
        # In heavy traffic all of them are exact.
        assert error[table[0] == 0.95].mean() < error[table[0] == 0.7].mean()
    rho, ca, cs, _, exact = table
    args = {"arrival_rate": rho, "service_rate": 1, "arrival_scv": ca, "service_scv": cs}
    assert np.all(gg1_upper_bound(**args).mean_waiting_time >= exact * (1 - 1e-9))
    assert np.all(gg1_lower_bound(**args).mean_waiting_time <= exact * (1 + 1e-9))


def test_several_servers(grid):
    table = grid([2, 4, 8], [0.7, 0.9], (0.5, 1.0, 4.0))
    few = table[3] <= 4
    for model, mean, largest, few_mean in (
        (ggc_allen_cunneen, 0.14, 1.0, 0.1),
        (ggc_kimura, 0.075, 0.4, 0.06),
        (ggc_whitt, 0.06, 0.4, 0.05),
    ):
        error, of_response = errors(model, table, servers=table[3].astype(int))
        assert error.mean() < mean and error.max() < largest and error[few].mean() < few_mean
        assert of_response.max() < 0.14
        poisson = table[1] == 1
        if model is ggc_kimura:
            assert error[poisson].max() < 0.03


@pytest.mark.slow
def test_the_whole_grid(grid):
    """Utilization 0.3 to 0.95, SCVs 0.25 to 4, up to 16 servers: the numbers of the docstrings."""
    whole = [0.3, 0.5, 0.7, 0.9, 0.95]
    table = np.concatenate([grid([2, 4], whole, SCVS), grid([8, 16], whole, SCVS[1:])], axis=1)
    busy, few, poisson = table[0] >= 0.7, table[3] <= 4, table[1] == 1
    for model, mean, largest, few_mean, response in (
        (ggc_allen_cunneen, 0.13, 1.9, 0.07, 0.145),
        (ggc_kimura, 0.07, 0.52, 0.04, 0.135),
        (ggc_whitt, 0.06, 0.64, 0.03, 0.08),
    ):
        error, of_response = errors(model, table, servers=table[3].astype(int))
        assert error[busy].mean() == pytest.approx(mean, abs=0.01)
        assert error[busy].max() < largest and error[busy & few].mean() < few_mean
        assert of_response.max() < response
    assert errors(ggc_kimura, table, servers=table[3].astype(int))[0][busy & poisson].max() < 0.031
