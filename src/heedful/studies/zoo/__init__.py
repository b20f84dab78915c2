"""The zoo of attention mechanisms: trainings of its tasks, side by side."""
