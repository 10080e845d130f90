"""Stations whose arrivals are Poisson and whose services are exponential, or do not matter."""
