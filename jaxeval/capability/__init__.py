"""Numbers that are quoted of models: time horizons, capability indices, and fronts of quality and cost."""
