"""GPU code: which architectures built files contain, and which ones build scripts and lists ask for."""
