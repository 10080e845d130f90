"""Networks-on-chip: waits, saturation, closed loops, power, and messages between programs."""
