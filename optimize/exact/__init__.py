"""Exact programs over a model that is evaluated where it decides: tables, relations, cuts, a certificate."""
