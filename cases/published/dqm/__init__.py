"""Ykman-Couvreur et al. (DAC 2002): data queueing in a network processor."""
