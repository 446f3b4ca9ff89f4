"""The command line: arguments in, exit code and text out; each command is a few lines around one library call."""
