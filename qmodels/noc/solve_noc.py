r"""Latency and saturation of wormhole networks: the model behind ``solve(noc)``."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from qmodels.noc.collapse import jam_loads
from qmodels.noc.noc_answer import Curve, noc_answer
from qmodels.noc.turns import Turns, group_turns
from qmodels.noc.waits import find_waits
from qmodels.systems.noc.flows import Bernoulli
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Answer
from qmodels.systems.traffic.arrivals import OnOff, modelled

MODEL = "wormhole model"


@lru_cache(maxsize=64)
def _turns(plain: Noc) -> tuple[Turns, tuple[str, ...]]:
    table = plain.flow_table()
    bursts = plain.process if isinstance(plain.process, OnOff) else None
    turns = group_turns(table, plain.router, rate=table.unit_rate, bursts=bursts)
    return replace(turns, jam=jam_loads(turns, plain.topology.kind)), plain.find_deadlock() or ()


def solve_noc(noc: Noc) -> Answer:
    r"""Return latencies, loads and the saturation rate of a network-on-chip.

    Parameters
    ----------
    noc : Noc
        The network; with an array of injection rates the answer is a load curve.

    Returns
    -------
    Answer
        Per flow, per channel and in all. Where there is no steady state, latencies are ``inf`` and
        ``stable`` is False. Where packets may wait for each other in a circle, which ``deadlock``
        names, the numbers hold as long as they never do. Closed loops (`Transactions`) are answered by
        `qmodels.noc.closed_loop`.

    Notes
    -----
    For packets of :math:`L` flits, all at a turn from channel :math:`a` into :math:`b`: :math:`R_{ab}`
    is the rate of the turn, :math:`\lambda_b = \sum_a R_{ab}`, :math:`\rho_b = \lambda_b L`.

    1. *Output.* If inputs could send any packet, not only the first, the wait for output :math:`b`
       would be that of a batch-arrival queue less what packets have waited already because they came
       one after the other on their link:

       .. math:: U_b = \frac{\rho_b(L-1) + L(\lambda_b^2 - \sum_a R_{ab}^2)/\lambda_b}{2(1-\rho_b)}
                 - \sum_a \frac{R_{ab}}{\lambda_b}\,\frac{R_{ab}L(L-1)}{2(1-R_{ab}L)},

       divided among the inputs in proportion to :math:`\lambda_b - R_{ab}`. For one buffer per
       output and equal packets this is exact in a tree of queues (delays in a tree of equal servers
       add up to that of the last).
    2. *Head.* The first packet of a virtual channel waits for the heads of other inputs,
       :math:`h_{ab} = \sum_{k \ne a} R_{kb}(L^2/2 + L h_{kb})`, and with more than one virtual
       channel for those beside it.
    3. *Behind heads.* Packets for other outputs wait behind it. Packets reach the input in
       clumps: some follow right behind the one before, which is what the departures of a queue do,
       and more of them the longer the heads :math:`H_a` that go into the channel were blocked. As a
       queue with geometric batches, service :math:`h`, and gaps of rate
       :math:`m_a = \lambda_a/(1-\rho_a)`,

       .. math:: q_{ab} = \sum_{b' \ne b} p_{ab'} \frac{m_a E[h^2 + h]/2 +
                 \frac{\rho_a + \beta\lambda_a H_a}{1-\rho_a} E[h]}{1 - m_a E[h]},

       for packets in the same virtual channel, 1 of :math:`v`; nearly the same for those in others,
       since an input sends one flit at a time and the switch allocator lets a virtual channel that
       asks in vain stand in the way of the others.
    4. *Full buffers.* A packet finds the :math:`v` buffers behind :math:`b` full with the
       probability that a wait there exceeds the room less the credit loop and the gaps of the
       packets that fit in; then it is held up until one of those leaves, which takes their time at
       the front. This adds to :math:`h`, from the ejection back to the injection; a hold-up is
       no delay of its own, since the packet would otherwise have waited behind the same packets one
       buffer further on, but it stops others.

    Latency: zero load + source queue + :math:`\sum (U + q)` + delays of tails that were held up.
    Saturated is a load at which a channel would be busy all the time, heads would block an input all
    the time, or the fixed point does not exist, which is the rate at which the state without congestion
    ends; or one at which rings collapse, because a jam keeps itself alive (`qmodels.noc.collapse`).
    Waits that full buffers shift from the network to its sources are counted where they would be without
    a limit, so that latencies are better than their division.

    The queue of step 1 and the recursion over full buffers are old ideas [1]_; the constants that weigh
    steps 2 to 4 (`qmodels.noc.waits.WormholeLaw`) were fitted to flit-level simulations of 45 networks,
    which were not kept, and 15 of BookSim2's. An approximation (two terms for short
    buffers and classes of channels came after a look at 35 that were not fitted). What kept networks say of
    the constants: ``python -m cases.evidence constants``.

    Packets of different lengths, wider and narrower links and wires of any length enter through the
    moments of the time a packet keeps a channel busy. Priorities multiply :math:`U` and :math:`h` by
    Cobham's factor, between that without preemption and that with it, since a packet under way loses
    its output to a more urgent one when its flits come late; weights divide them among flows; both
    conserve the work. Bursty sources multiply :math:`U` by the wait of MMPP/G/1 over that of M/G/1, see
    `qmodels.noc.waits.burst_factor`. Circuits pass all else and slow it down by the part of the time
    they leave.

    All this is for packets that hold the switch. Where each flit competes for it the latencies of 7
    networks of BookSim2 are 1.0, 1.6 and 8.5 % off at 50, 70 and 85 % of the rate at which they saturate
    otherwise, at 85 % always too low (`tests/validate/noc/booksim_latency.csv`): ``doubts`` say so.

    Packets that a source sends to its targets in turn, one to each, meet less than those of random
    targets: `qmodels.noc.waits.smoothness` multiplies the waits of 1 and, unless credits come
    late, of 2. On 16 such networks the mean size of the error is 1.6 % at 75 % of the saturation rate of
    random targets and 7 % at 90 %; 8 and 31 % without. Runs of several packets to each target wait
    longer than the model says, which takes their targets for random: with 16 in a run, at 60 % of that
    rate, the latency is 43 % too low; ``doubts`` say so (`tests/reference/turn_taking.py`).

    References
    ----------
    .. [1] J. T. Draper and J. Ghosh, "A comprehensive analytical model for wormhole routing in
       multicomputer systems", J. Parallel and Distributed Computing, 1994 (idea; recalled).

    Examples
    --------
    >>> from qmodels.systems.noc.topology import mesh
    >>> from qmodels.systems.noc.patterns import uniform
    >>> noc = Noc(topology=mesh(4, 4), traffic=uniform(nodes=16), flits_per_packet=5, injection_rate=0.05)
    >>> answer = solve_noc(noc)
    >>> bool(answer.stable), round(answer.zero_load_latency, 2)
    (True, 17.0)
    >>> bool(answer.packet_latency < solve_noc(replace(noc, injection_rate=0.1)).packet_latency)
    True
    """
    noc = replace(noc, process=modelled("process", noc.process))
    if isinstance(noc.traffic, Transactions):
        from qmodels.noc.closed_loop import closed_loop

        return closed_loop(noc)
    process = noc.process if isinstance(noc.process, OnOff) else Bernoulli()
    turns, deadlock = _turns(replace(noc, injection_rate=0.0, process=process, clock_ghz=1.0))
    loads = np.ravel(np.asarray(noc.mean_rate, dtype=float))
    return noc_answer(Curve(noc, find_waits(turns, loads), deadlock), model=MODEL)
