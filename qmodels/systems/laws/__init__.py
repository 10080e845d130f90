"""Laws of times: what a source draws its gaps from, or a station its service times."""
