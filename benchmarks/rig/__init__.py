"""Real small training runs with real faults, watched while they train."""
