"""Five published systems reproduced table by table: published, from the model, and simulated."""
