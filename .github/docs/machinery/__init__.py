"""What the documentation is made with besides its sources."""
