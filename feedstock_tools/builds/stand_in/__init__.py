"""The stand-in channel: packages made on the spot with the metadata of real ones."""
