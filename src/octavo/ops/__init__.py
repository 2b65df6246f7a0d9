"""What an operator asks of a configuration: doctor, explain, lint, scan, and files to begin with."""
