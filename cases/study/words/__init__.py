"""What a study says: its answer, its findings and its traffic, in sentences and small tables."""
