"""A child process under guard: started, watched, and ended with all its processes."""
