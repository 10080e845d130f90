"""The page of a study: its data, its template, and the libraries that draw it, in one file."""
