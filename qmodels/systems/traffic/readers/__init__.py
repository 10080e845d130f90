"""Files of recorded packets: captures and texts."""
