"""What is done to a release: a wheel tried in clean environments, and the licences of what it brings along."""
