"""The measured error of the joint model: its size, its sign, and whether it orders the choices."""
