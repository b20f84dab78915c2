"""Many runs, one store: a plan, the engines that carry it out, and the table of what came of it."""
