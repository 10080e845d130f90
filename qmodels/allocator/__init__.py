"""Free-list models."""

from qmodels.allocator.trials import TrialResult, allocation_trials

__all__ = ["TrialResult", "allocation_trials"]
