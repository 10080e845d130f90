r"""The words that the functions for networks share; see `qmodels.described`.

Times and rates share one unit of time; a cycle of a closed network ends where a job comes back.

Parameters
----------
arrival_rate : array_like or mapping
    Jobs from outside, per station. [jobs / time]
arrival_rate (branches) : array_like
    Poisson arrivals of jobs :math:`\lambda \ge 0`. [jobs / time]
population : int, sequence or mapping of int
    Jobs in the network; one number per class, a mapping names the classes.
population (bounds) : int or array_like of int
    Jobs in the network, at least 1; an array gives bounds for each number.
mean_service_time, service_rate : array_like or mapping
    Exactly one: the mean service time of a visit at one server [time], or its inverse [jobs / time].
    Shape (stations,), for every class, or (stations, classes); a mapping by station names
    the stations. Without visits or routing the times are service demands.
service_rate : array_like or mapping
    Rate of *one* server of each station. [jobs / time]
service_rate (branches) : array_like
    Rate :math:`\mu` of each branch. [parts / time]
visits : array_like or mapping, optional
    Mean visits per cycle, same shapes; 1 by default.
routing : networkx.DiGraph or array_like, optional
    Gives the visits, see `visit_ratios`; the graph's nodes name the stations.
routing (open) : networkx.DiGraph or array_like of shape (stations, stations)
    A graph with the edge attribute ``probability``, whose nodes name the stations, or the matrix
    of the probabilities; what is missing to 1 leaves the network.
reference : hashable, optional
    Station whose visits are 1 where `routing` is given; the first by default.
think_time : float or array_like, optional
    Time a job spends outside the stations per cycle; one number or one per class. [time]
servers : int, array_like or mapping, optional
    Servers per station; ``inf`` for a delay.
rate_multiplier : mapping of station to sequence, optional
    Rate of a station with 1, 2, ... jobs as a multiple of its `service_rate`; the last
    value holds for all larger numbers.
branches : array_like of int
    Number of branches :math:`n \ge 1`.
discipline : str or sequence of str, optional
    Order of service per station, ``"ps"`` (also last come first served preemptive) or
    ``"fcfs"``, which is refused where classes differ in their service times: `linearizer`
    approximates that.
discipline (approximate) : str or sequence of str, optional
    Order of service per station: ``"ps"`` (the default: shared, or any product form, so that
    the same arguments mean the same network here and in `mva`), ``"fcfs"`` (each class with
    its own service time), ``"priority"`` (classes in the order of `priority`, first come
    first served within one, never interrupted) or ``"preemptive"`` (interrupted and resumed).
service_scv : float or array_like, optional
    Squared coefficient of variation of the service time, same shapes as the service time;
    1 by default. Used by first come first served and priorities; refused without a `discipline`.
priority : sequence of int, optional
    Rank of each class, 0 served first; by default the order of the classes.
**network
    `mean_service_time` or `service_rate`, `visits` or `routing`, `think_time` and `servers` as for
    `mva`, without classes.
**network (single)
    `mean_service_time` or `service_rate`, `visits` or `routing`, `think_time` and `servers` as for
    `mva`, without classes, with servers 1 or ``inf``.

Returns
-------
NetworkResult
    Kind "approximation"; a closed network is never overloaded.
NetworkResult (exact)
    Kind "exact"; a closed network is never overloaded.
NetworkBounds
    Arrays of the shape of `population`.

Raises
------
ValueError
    If an argument is out of range.
ValueError (never left)
    If an argument is out of range or jobs enter a part of the network that they never leave.
ValueError (populations)
    If an argument is out of range, or the classes' populations have more than 20 million
    combinations.
ValueError (single)
    If an argument is out of range, or a station has several servers.
RuntimeError (iteration)
    If the iteration does not converge.
ValueError, RuntimeError (convolution)
    As `convolution`.
"""

from qmodels.described import Described

described = Described(__doc__)
