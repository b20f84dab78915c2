"""Who watches the verdicts: worlds whose truth is known, what the audit answers there, and how often it is wrong."""
