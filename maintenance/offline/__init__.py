"""What users do with this program, done in a container without network (`__main__`), by its Python (`inside`)."""
