"""Stations with general laws of service or of arrivals, first come first served."""
