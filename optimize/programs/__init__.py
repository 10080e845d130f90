"""Integer and dynamic programs: choices, fronts, placements and assignments proven optimal."""
