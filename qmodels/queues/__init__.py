"""Single stations: one published model is one pure function over arrays."""

from qmodels.queues.disciplines.polling import polling, polling_limited, weighted_round_robin
from qmodels.queues.disciplines.priority import mg1_nonpreemptive, mg1_preemptive_resume
from qmodels.queues.disciplines.sharing import mg1_ps, mm1_dps, mm1_ps
from qmodels.queues.disciplines.srpt import fb_response_time, mg1_fb, mg1_srpt, srpt_response_time
from qmodels.queues.disciplines.vacation import mg1_setup, mg1_vacations
from qmodels.queues.general.discrete import geod1, geog1, geoxg1
from qmodels.queues.general.gg1 import gg1_kingman, gg1_klb, gg1_lower_bound, gg1_marchal, gg1_upper_bound
from qmodels.queues.general.ggc import ggc_allen_cunneen, ggc_kimura, ggc_whitt
from qmodels.queues.general.gm1 import gm1, gmc
from qmodels.queues.general.mdc import md1, mdc
from qmodels.queues.general.mg1 import mg1, mxg1
from qmodels.queues.general.mg1_laws import mek1, mg1_fcfs, mh21
from qmodels.queues.general.mg1k import md1k, mg1k
from qmodels.queues.general.transient import lindley_waiting_times
from qmodels.queues.inverse import erlang_b_servers, erlang_c_servers, largest_rate, smallest_whole
from qmodels.queues.markovian.engset import engset, engset_time_congestion, mmc_finite
from qmodels.queues.markovian.erlang import erlang_b, erlang_c, kaufman_roberts
from qmodels.queues.markovian.erlang_a import erlang_a
from qmodels.queues.markovian.insensitive import mgcc, mginf
from qmodels.queues.markovian.mmc import mm1, mmc, mminf
from qmodels.queues.markovian.mmc_priority import mmc_nonpreemptive, mmc_preemptive
from qmodels.queues.markovian.mmck import mm1k, mmcc, mmck
from qmodels.queues.markovian.state_dependent import mmc_balking, state_dependent

__all__ = [
    "engset",
    "engset_time_congestion",
    "erlang_a",
    "erlang_b",
    "erlang_b_servers",
    "erlang_c",
    "erlang_c_servers",
    "fb_response_time",
    "geod1",
    "geog1",
    "geoxg1",
    "gg1_kingman",
    "gg1_klb",
    "gg1_lower_bound",
    "gg1_marchal",
    "gg1_upper_bound",
    "ggc_allen_cunneen",
    "ggc_kimura",
    "ggc_whitt",
    "gm1",
    "gmc",
    "kaufman_roberts",
    "largest_rate",
    "lindley_waiting_times",
    "md1",
    "md1k",
    "mdc",
    "mek1",
    "mg1",
    "mg1_fb",
    "mg1_fcfs",
    "mg1_nonpreemptive",
    "mg1_preemptive_resume",
    "mg1_ps",
    "mg1_setup",
    "mg1_srpt",
    "mg1_vacations",
    "mg1k",
    "mgcc",
    "mginf",
    "mh21",
    "mm1",
    "mm1_dps",
    "mm1_ps",
    "mm1k",
    "mmc",
    "mmc_balking",
    "mmc_finite",
    "mmc_nonpreemptive",
    "mmc_preemptive",
    "mmcc",
    "mmck",
    "mminf",
    "mxg1",
    "polling",
    "polling_limited",
    "smallest_whole",
    "srpt_response_time",
    "state_dependent",
    "weighted_round_robin",
]
