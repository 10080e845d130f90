"""What streams between parts cannot carry: each coupling in a file that names the parts it couples."""
