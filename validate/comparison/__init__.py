"""A model's answer beside a simulation's or an imported one."""
