"""The paper's experiments, one module each, with honest baselines and every certificate kept."""
