"""Phase-type laws, Markovian arrival processes, and the queues built on them."""
