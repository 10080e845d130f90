"""The command ``qmodels``."""
