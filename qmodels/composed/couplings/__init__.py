"""Dependences between parts that streams cannot carry, by the parts that they couple."""
