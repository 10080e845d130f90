"""Networks-on-chip: topologies, routes, routers, and what is sent over them."""
