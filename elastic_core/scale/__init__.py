"""What a training takes of the machine's memory, and trainings on several processes."""
