"""A child process under guard: started, watched, and ended with everything that it started."""
