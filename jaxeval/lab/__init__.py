"""Studies of methods, and further methods: they work and are tested, but their names and numbers may change."""
