"""Why the files in `.ci_support` look as they do."""
