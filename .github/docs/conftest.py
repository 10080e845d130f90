"""What the tests leave to the build: scripts of pictures, and what a build writes between the sources."""

collect_ignore = ["gallery", "machinery", "pictures", "conf.py"]
