"""What published papers conclude, computed: the verdict, by how much, and where it turns."""
