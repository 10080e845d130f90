r"""The words that the models of single stations share; see `qmodels.described`.

Times and rates share one unit of time.

Parameters
----------
arrival_rate : array_like
    Poisson arrival rate :math:`\lambda \ge 0`. [jobs / time]
arrival_rate (renewal) : array_like
    Rate :math:`\lambda \ge 0` of a renewal arrival process. [jobs / time]
arrival_rate (offered) : array_like
    Poisson arrival rate :math:`\lambda \ge 0`, lost jobs included. [jobs / time]
arrival_rate (classes) : array_like
    Poisson rates :math:`\lambda_k \ge 0`, classes along the last axis, the highest first. [jobs / time]
arrival_rate (queues) : array_like
    Poisson rates :math:`\lambda_i \ge 0`, queues along the last axis as visited. [jobs / time]
arrival_rate (scalar) : float
    Poisson arrival rate. [jobs / time]
arrival_rate (slots) : array_like
    Probability :math:`p \in [0, 1]` of an arrival in a slot. [jobs / slot]
service_rate : array_like
    Rate :math:`\mu > 0` of one server. [jobs / time]
service_rate (constant) : array_like
    Rate :math:`\mu > 0` of one server; each service takes :math:`D = 1/\mu`. [jobs / time]
service_rate (leading) : array_like
    Rate :math:`\mu > 0` of one server; its shape is that of the leading axes. [jobs / time]
service_rate, mean_service_time : array_like
    Exactly one: the rate :math:`\mu` of one server [jobs / time], or the mean :math:`m_1` of the service
    time there [time].
mean_service_time (classes) : array_like
    Mean service times :math:`s_k > 0` of the classes. [time]
mean_service_time (queues) : array_like
    Mean service times :math:`b_i > 0`. [time]
mean_service_time (slots) : array_like
    Mean service time :math:`m_1 \ge 1`. [slots]
servers : array_like of int
    Number of servers :math:`c \ge 1`.
servers (leading) : array_like of int
    Number of servers :math:`c \ge 1`, as `service_rate`.
capacity : array_like of int
    Jobs in service and waiting, :math:`K \ge 1` and at least the number of servers.
arrival_scv, service_scv : array_like
    Squared coefficients of variation :math:`c_a^2` of the times between arrivals and :math:`c_s^2` of
    the service times.
service_scv : array_like
    Squared coefficient of variation of the service time; 0 is deterministic, 1 exponential.
service_third_moment : array_like, optional
    Raw third moment of the service time; with it the result has variances. [time^3]
arrival : Law
    Law of the times between arrivals, see `qmodels.laws`.
arrival, service : Law, optional
    The laws of the times between arrivals and of the service, in place of these numbers. [time]
service (instead) : Law, optional
    Law of the service time, in place of the mean (or rate) and the SCV. [time]
service (each) : Law or sequence of Law, optional
    Laws of the service times of the classes or queues, in place of these means and SCVs. [time]
service : Law
    Law of the service time, see `qmodels.laws`. [time]
offered_load : array_like
    :math:`a = \lambda / \mu \ge 0`. [erlang]
source_rate : array_like
    Rate :math:`\nu \ge 0` of the requests of one idle source. [jobs / time]
mean_switch_time : array_like
    Mean time :math:`r_i \ge 0` of moving on from queue i. [time]
switch_scv : array_like
    Squared coefficients of variation of the switch times.
size : array_like
    Service times of the jobs asked about. [time]
sources : array_like of int
    Number of sources :math:`N \ge 1`.

Returns
-------
QueueResult
    Arrays of the broadcast shape of the inputs (scalars give scalars). Where :math:`\rho \ge 1` no
    steady state exists: waiting times (and their variances) are ``inf``, the utilization is 1 and the
    throughput what the servers can do.
QueueResult (tails)
    With variances, the distribution of the number in system, and those of waiting and response time with
    their quantiles; where :math:`\rho \ge 1` waiting times are ``inf``, the utilization is 1.
QueueResult (entering)
    Arrays of the broadcast shape of the inputs; times are those of the jobs that enter.
    Always stable, also where :math:`\lambda > c\mu`.
QueueResult (mg1_fcfs)
    As `mg1_fcfs`.
QueueResult (response)
    `mean_waiting_time` is the response time less the service time; ``inf`` where :math:`\rho \ge 1`.
QueueResult (all or none)
    One entry per queue. Where :math:`\sum_i \rho_i \ge 1` all waiting times are ``inf``.

Raises
------
ValueError
    If an argument is out of range.
"""

from qmodels.described import Described

described = Described(__doc__)
