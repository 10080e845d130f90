"""Packets followed one by one through servers of which only the work in front is kept."""
