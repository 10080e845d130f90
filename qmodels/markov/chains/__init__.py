"""Markov chains with named states: long run, absorption, transient laws."""
