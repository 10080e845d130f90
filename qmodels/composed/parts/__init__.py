"""Responses of each kind of part to its streams, by the part's own model; a file a kind."""

from qmodels.composed.parts.dispatch import load_of as load_of
from qmodels.composed.parts.dispatch import lookup_shares as lookup_shares
from qmodels.composed.parts.dispatch import lookup_shares_of as lookup_shares_of
from qmodels.composed.parts.dispatch import respond as respond
from qmodels.composed.parts.free_list import lost_jobs as lost_jobs
from qmodels.composed.parts.free_list import trial_law as trial_law
from qmodels.composed.parts.network import network_load as network_load
from qmodels.composed.parts.network import respond_network as respond_network
