"""The simulator of DRAM channels and their controllers, command by command."""
