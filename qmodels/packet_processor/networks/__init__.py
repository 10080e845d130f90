"""The networks of the joint processor: loads, waits and blocking of their links."""
