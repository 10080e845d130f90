"""Evidence on a model beside its answer: measured error, sources, fitted constants, descriptions."""
