"""The terminal session of the README: commands that really run in a pseudo-terminal, drawn as an animated SVG."""
