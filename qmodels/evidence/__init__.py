"""What is known of a model beside its answer: measured error, sources, fitted constants, words about it."""
