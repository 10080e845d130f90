r"""The words that chains and the processes on them share; see `qmodels.described`.

Parameters
----------
initial : state, mapping or array
    Start: a state's name, probabilities by name, or an array over all states.
initial (optional) : state, mapping or array, optional
    Start; needed for `probabilities` only if there are several closed classes.
initial_state : hashable
    The first state.
max_states : int
    More states than this are an error (a rule without end).
graph : networkx.DiGraph or MultiDiGraph
    Parallel edges add up.
max_iterations : int
    Cycles of the iteration.
times : array_like
    Times :math:`t \ge 0`. [time]
steps : array_like of int
    Numbers of steps :math:`k \ge 0`.
first, second : Law
    Laws made of phases: exponential, Erlang, hyperexponential, phase-type.
service : Law
    Law of the service time, made of phases: exponential, Erlang, hyperexponential, phase-type. [time]
arrivals : Law
    Arrival process: a `MAP`, or gaps made of phases.
arrival_rate : float
    Poisson arrival rate. [jobs / time]
arrival_rate (servers) : float
    Arrivals per server, :math:`\lambda > 0`. [jobs / time]
service_rate : float
    Rate :math:`\mu` of each server. [jobs / time]
size : int
    How many.
rng : numpy.random.Generator
    Source of randomness.
drift : callable
    f, for one state vector. [1 / time]

Returns
-------
StationaryDistribution
    With the residual reached, the closed classes and the transient states.
Occupancy
    Not stable where :math:`\lambda \ge \mu`.
QueueResult
    Scalars, with the distributions of number, waiting and response time. Overload (arrival
    rate at least the service rate): waiting time ``inf``, stable False.

Raises
------
ValueError
    If an argument is out of range.
"""

from qmodels.described import Described

described = Described(__doc__)
