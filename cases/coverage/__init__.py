"""Whether the simulators' intervals cover what is true as often as they say, or say that they do not."""
