"""What becomes of the published designs on today's parts and at today's speeds."""
